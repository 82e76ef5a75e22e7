"""The typed IR: nodes, their checker, their text form, and walks over them.

It needs only types. Out: the programs that the front end builds, passes rewrite and back ends read. It may not know
what an op means; only `parse` looks ops up, by the names in a text.
"""
