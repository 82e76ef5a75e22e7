"""Typed IR to machine code of a GPU, and its launch there.

In: a typed program, what is known of its arguments, a target. Out: a cubin from the cache or the assembler; launches.
It may not know the front end or the interpreter, and gives no op a meaning.
"""
