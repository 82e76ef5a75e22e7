"""The command line, `python -m cutile`: one file or folder per verb; main.py puts them together.

In: a command line. Out: text and an exit status. A verb only reads its arguments and prints; the other rooms do the
work. It may import all of them, and none may know it.
"""
