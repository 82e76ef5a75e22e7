"""Kernels on NVIDIA GPUs: typed IR to Tile IR bytecode, to a cubin, to a launch."""
