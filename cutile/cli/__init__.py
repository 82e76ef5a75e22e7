"""`python -m cutile`: a file for each verb.

In: a command line. Out: text, and an exit status. Whatever a verb does is done by the other rooms.
"""
