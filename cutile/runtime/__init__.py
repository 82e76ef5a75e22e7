"""Launches: what happens between `ct.launch` and a back end.

In: a decorated Python function, a grid, a stream, arguments. Out: a typed program, and the arguments as a back end
takes them. Both are kept for repeated launches. It may not know how a back end works: it asks one to prepare a launch,
and runs that.
"""
