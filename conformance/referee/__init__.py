"""The referee: runs one program on two implementations, compares them, and makes a case of a disagreement.

    python -m conformance.referee --first cutile:interp --second reference --count 1000

Results must be equal bit for bit, or within what the language leaves open in the ops involved (cutile.bounds). A
disagreement is shrunk to a few lines, the first value that differs is named, and the case is written for a reader.
"""

from conformance.referee.compare import Verdict, compare
from conformance.referee.implementations import Implementation, implementation

__all__ = ["Implementation", "Verdict", "compare", "implementation"]
