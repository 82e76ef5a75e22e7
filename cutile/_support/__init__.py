"""Small tools that every room may use. They may not know tiles, kernels or any room; `trace` reads a setting.

Where a tool replaces one of the standard library, its docstring gives the measured gain.
"""
