"""python -m cutile diff: run one launch of a kernel on two back ends and name the first statement that differs.

`record` adds to the kernel a record of every tile that is assigned, `backends` runs the kernel, `compare` compares the
records and the arrays, `command` is the verb.
"""
