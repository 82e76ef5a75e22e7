"""Tile IR: the types and operations, the bytecode that `tileiras` reads, and the tool itself.

In: typed IR and what is known of its parameters. Out: bytecode, or a cubin. It may not know launches or the cache.

`builder` is what a lowering uses; `operations` and `types` hold the facts; `bytecode_writer` knows the format.
"""
