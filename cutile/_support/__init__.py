"""Small tools that every room may use; they know nothing of tiles, kernels or arrays.

Where a tool replaces one of the standard library, its docstring gives the measured gain.
"""
