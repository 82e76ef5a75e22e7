"""Pieces of a source that no file has."""

import linecache

from cutile.spans import Span

SOURCE = [
    "def k(x):\n",
    "    y = helper(x +\n",
    "               1)\n",
    "\n",
    "def helper(z):\n",
    "    return z.größe\n",
]
linecache.cache["<errors>"] = (0, None, SOURCE, "<errors>")
CALL = Span("<errors>", 2, 8, 3, 17, "k")
PLACE = Span("<errors>", 6, 11, 6, 18, "helper", CALL)
