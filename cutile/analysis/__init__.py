"""Facts about a typed program.

In: typed IR. Out: facts, each found by one module; nothing here changes a program. It may not know passes, back ends or
the arguments of a launch.
"""
