"""The verb `run`: an unchanged script, under the settings that the command names.

command.py reads the arguments, aliases.py lets scripts import cutile under another name, torch_cpu.py stands in for the
parts of torch.cuda without which scripts for GPUs do not start.
"""
