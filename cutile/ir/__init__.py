"""The typed IR: nodes, their checker, their text, and walks over them.

In: nothing but types. Out: what the front end builds, passes rewrite and back ends read. It may not know any op.
"""
