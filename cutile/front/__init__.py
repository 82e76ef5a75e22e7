"""The front end: Python syntax → typed IR. Nothing else in the package knows Python's syntax, scoping or constness."""
