"""Arrays as the interpreter reads and writes them.

In: NumPy arrays, and accesses of many blocks at once. Out: tiles; nothing is read or written outside an array. It may
not know the program or the schedule.
"""
