"""Small tools of ours that any room may use: they know nothing of tiles, kernels or arrays.

Where one replaces something of the standard library, its docstring says what that gains, as measured.
"""
