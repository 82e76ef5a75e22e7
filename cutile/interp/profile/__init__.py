"""Profiles: time, memory traffic and arithmetic of launches in the interpreter, by line of the kernel.

In: launches. Out: a `KernelProfile` for each kernel, as a table, as data, and as a file that speedscope reads.
`lines.py` measures, `process.py` keeps the profiles of CUTILE_PROFILE, `report.py` writes them.
"""
