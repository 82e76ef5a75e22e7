"""Pictures of launches: which elements each block touches, line by line, as data and as a page.

In: a kernel, a grid, arguments. Out: plain data in a form that stays (form.py), and one HTML file. It knows no meaning
of ops: a launch is run twice in the interpreter, once with the sanitizer and once with a watcher (record.py), on the
arrays themselves, which are put back. `trace.py` does that, `data.py` makes the data, `html.py` the page, of the parts
in `page/`.
"""
