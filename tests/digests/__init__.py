"""Digests of the bytecode that every conformance program is compiled to: what a change of the compiler's inside keeps.

`adapter` records what each launch compiles to, `compiling` is the way into the compiler, `worker` runs one file of the
suite, `store` is what is kept of all files in `tests/data/digests.json`, and `python -m tests.digests` records and
compares.
"""
