"""The sanitizer: checks that run beside a kernel and report what the language leaves undefined.

In: a typed program and the names of checks. Out: a program with further ops, which the emitters compile as any other,
and after a launch one TileSanitizerError with all findings. It knows no op's meaning: a check looks at operands, at
the description of an access (analysis/access.py), or runs the op's own meaning on other data.

`instrument` puts the ops of all checks into a program: `undetermined.py`, `bounds.py`, `race.py` and `traps.py` say
where, and the files of ops have the meanings. `alias.py` looks at arguments only. `findings` collects what they report;
`sites` says where in the user's source that is.
"""
