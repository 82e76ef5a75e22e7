"""Warnings of torch.export: what an exported program holds by name must be found by the process that loads it."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch


def warn_of_main(what: str, of: Any) -> None:
    """UserWarning while a program is exported, for what is in the module that a process runs."""
    if of.__module__ == "__main__" and torch.compiler.is_exporting():
        _warn(what, of.__qualname__)


@functools.cache
def _warn(what: str, name: str) -> None:
    warnings.warn(f"the exported program has {what} `{name}`, which is in the script that runs. Another process finds "
                  f"it only if it runs the same script: put it into a module that both import", stacklevel=2)
