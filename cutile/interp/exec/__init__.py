"""The functions that emitted code calls: sets of blocks, divergent control flow, checks, blocks that take turns.

In: the blocks that run and their values. Out: values, and which blocks go on. It may not know the program.
"""
