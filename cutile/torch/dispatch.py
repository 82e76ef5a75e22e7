"""What PyTorch's dispatcher would do with a call after autograd [PT-5]."""

from __future__ import annotations

import functools
from typing import Any

import torch

_VERSIONS = torch._C.DispatchKey.ADInplaceOrView
_DEVICES = {torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA}


def kernel_is_next(keyset: Any) -> bool:
    """Whether nothing stands between autograd and the kernel of a device: no mode, no subclass of tensors, no lazy
    negation. Versions of tensors do not count, since launches raise them.
    """
    return _kernel_is_next(keyset.raw_repr())


@functools.cache
def _kernel_is_next(keys: int) -> bool:
    """The same for a set of keys as a number. There are few of them."""
    below = torch._C.DispatchKeySet.from_raw_repr(keys) & torch._C._after_autograd_keyset
    return below.remove(_VERSIONS).highestPriorityTypeId() in _DEVICES
