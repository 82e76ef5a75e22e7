"""The referee: runs programs on two implementations, compares the results, and writes a page about each disagreement.

    python -m conformance.referee --first cutile:interp --second reference --count 1000

Results must be equal bit for bit, or within the freedoms of the ops involved (cutile.bounds). A disagreement is
shrunk to a few lines, and the page names the first value that differs.
"""

from conformance.referee.compare import Verdict, compare
from conformance.referee.implementations import Implementation, implementation

__all__ = ["Implementation", "Verdict", "compare", "implementation"]
