"""Iterators: inputs and outputs of algorithms that are no arrays, or more than arrays [ITR-*].

In: arrays, other iterators, values, operators. Out: operands of algorithms. They know nothing of algorithms and plans.

Every operand of an algorithm is an `IteratorBase` (`base.py` says what that is); `memory.py` wraps arrays.
"""

from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.composed import PermutationIterator, ReverseIterator, ZipIterator
from cutile.compute.iterators.discard import DiscardIterator
from cutile.compute.iterators.memory import CacheModifiedInputIterator
from cutile.compute.iterators.shuffle import ShuffleIterator
from cutile.compute.iterators.transform import TransformIterator, TransformOutputIterator
from cutile.compute.iterators.values import ConstantIterator, CountingIterator

__all__ = ["CacheModifiedInputIterator", "ConstantIterator", "CountingIterator", "DiscardIterator", "IteratorBase",
           "PermutationIterator", "ReverseIterator", "ShuffleIterator", "TransformIterator", "TransformOutputIterator",
           "ZipIterator"]
