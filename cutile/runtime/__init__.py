"""A launch, from what the user passes to a back end.

In: a decorated Python function, a grid, a stream, arguments. Out: a typed program and arguments as a back end takes
them, kept for repeated launches. It may not know how a back end works: it prepares a launch there and runs it.
"""
