"""Lowering rules, a file for each family of ops; importing this package fills the table."""

from __future__ import annotations

import importlib
import pkgutil

for _family in pkgutil.iter_modules(__path__, __name__ + "."):
    importlib.import_module(_family.name)
