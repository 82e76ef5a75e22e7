"""Passes over the IR that know no target: each takes a kernel and returns one, in a file of its own."""
