"""IR to IR, a transformation in each module.

In: typed IR that the checker accepts. Out: typed IR of the same meaning, which it accepts too. It may not know the
front end or a back end.
"""
