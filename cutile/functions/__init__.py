"""Kernels as ordinary functions (docs/functions.md): `ct.jit` and what is made of its functions.

In: a kernel, and what its outputs, its grid and its defaults are in terms of its inputs. Out: functions from arrays to
arrays, which launch the kernel. They add no meaning: all that they do goes through `ct.launch` or `cutile_call`.
"""
