"""Tile IR: the types and operations, the bytecode that `tileiras` reads, and the tool itself.

`builder` is what a lowering uses; `opcodes` and `types` are the facts; `bytecode` writes and `read` reads the format.
"""
