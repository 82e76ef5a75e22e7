"""The verb `show`: a stage of a kernel's compilation, as text.

command.py reads the arguments, words.py the types among them; stages.py makes the text.
"""
