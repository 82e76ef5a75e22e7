"""Traces: what each block of a launch does, told to a watcher while it runs.

In: a typed program and a `Watcher`. Out: the program with ops that call the watcher, which the emitters compile as any
other, under every schedule. Accesses are those of analysis/access.py; nothing here finds them again. `watchers.py` puts
the ops into a program, `elements.py` says which elements of which array an access reaches.
"""
