"""The conformance suite of the cuTile language: does an implementation do what the language says? See README.md."""
