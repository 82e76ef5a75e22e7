"""From typed IR to Python code that carries the user's file, lines and names.

In: a kernel in typed IR. Out: a Python function to call with a set of blocks and the arguments, for one schedule. It
may not know the arguments of a launch.
"""
