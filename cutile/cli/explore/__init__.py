"""The verb `explore`: runs a launch in many orders of its blocks and looks for one that changes what it does.

command.py reads the arguments and writes the report, outcomes.py says what a launch did, search.py finds an order that
makes a difference and shortens it.
"""
