"""The command line, `python -m cutile`: one file or folder per verb; main.py puts them together.

In: a command line. Out: text and an exit status. A verb reads its arguments and prints; most of the work is that of
other rooms. A folder also holds what no other room needs, such as the search of `explore`. It may import all of them,
and none may know it.
"""
