"""Python syntax to typed IR.

In: a Python function and the types of its arguments. Out: a typed program, or all errors of the kernel. It alone knows
Python's syntax, scopes and constants; it may not know targets, versions of bytecode or back ends.
"""
