"""Device-wide algorithms with operators in Python: the surface of `cuda.compute`, on CPU and GPU arrays.

In: arrays and iterators, operators, and a stream. Out: arrays that are written in place. Each algorithm is a file with
kernels of this language and an object that launches them; `algorithm.py` says how one is made. They add no meaning: all
that operators compute, kernels compute, but for those that are one op on arrays in host memory. There NumPy also moves
and sorts items, in a call for all of them (`host_….py`), with the results of the kernels.

What a call goes through: `roles.py` reads its arguments. `iterators` (operands; of arrays, `arrays.py`, and of structs
in memory of libraries, `structured.py`) and `operators.py` (`function_key.py` tells functions apart, `captured.py` has
the arrays that they capture, `results.py` what they give) say what kernels depend on. `plans.py` keeps the launches of
a call for those like it, as `steps.py`, behind the checks of `overlaps.py`. `readers.py` is the tile code of operands,
`blocks.py` that of operators on tiles; `value_types.py` has the types of items, numbers and structs,
`complex_numbers.py` complex numbers.
"""

from cutile.compute.ahead import clear_pch_cache, deserialize, pch_cache_dir, serialize
from cutile.compute.algorithm import Algorithm, clear_all_caches
from cutile.compute.delegation import backend
from cutile.compute.histogram import histogram_even, make_histogram_even
from cutile.compute.iterators import (
    CacheModifiedInputIterator,
    ConstantIterator,
    CountingIterator,
    DiscardIterator,
    IteratorBase,
    PermutationIterator,
    ReverseIterator,
    ShuffleIterator,
    TransformIterator,
    TransformOutputIterator,
    ZipIterator,
)
from cutile.compute.merge import make_merge_sort, merge_sort
from cutile.compute.operators import OpKind, RawOp
from cutile.compute.pairs import DoubleBuffer, SortOrder
from cutile.compute.proxies import ProxyArray, ProxyValue
from cutile.compute.radix import make_radix_sort, radix_sort
from cutile.compute.reduce import Determinism, make_reduce_into, reduce_into
from cutile.compute.reduce_by_key import make_reduce_by_key, reduce_by_key
from cutile.compute.run_length_encode import make_run_length_encode, run_length_encode
from cutile.compute.scan import exclusive_scan, inclusive_scan, make_exclusive_scan, make_inclusive_scan
from cutile.compute.search import lower_bound, make_lower_bound, make_upper_bound, upper_bound
from cutile.compute.segmented_reduce import make_segmented_reduce, segmented_reduce
from cutile.compute.select import make_select, select
from cutile.compute.sort_segments import make_segmented_sort, segmented_sort
from cutile.compute.three_way_partition import make_three_way_partition, three_way_partition
from cutile.compute.top_k import make_top_k, top_k
from cutile.compute.transform import binary_transform, make_binary_transform, make_unary_transform, unary_transform
from cutile.compute.unique_by_key import make_unique_by_key, unique_by_key
from cutile.compute.value_types import gpu_struct

__all__ = [
    "Algorithm",
    "CacheModifiedInputIterator",
    "ConstantIterator",
    "CountingIterator",
    "Determinism",
    "DiscardIterator",
    "DoubleBuffer",
    "IteratorBase",
    "OpKind",
    "PermutationIterator",
    "ProxyArray",
    "ProxyValue",
    "RawOp",
    "ReverseIterator",
    "ShuffleIterator",
    "SortOrder",
    "TransformIterator",
    "TransformOutputIterator",
    "ZipIterator",
    "backend",
    "binary_transform",
    "clear_all_caches",
    "clear_pch_cache",
    "deserialize",
    "exclusive_scan",
    "gpu_struct",
    "histogram_even",
    "inclusive_scan",
    "lower_bound",
    "make_binary_transform",
    "make_exclusive_scan",
    "make_histogram_even",
    "make_inclusive_scan",
    "make_lower_bound",
    "make_merge_sort",
    "make_radix_sort",
    "make_reduce_by_key",
    "make_reduce_into",
    "make_run_length_encode",
    "make_segmented_reduce",
    "make_segmented_sort",
    "make_select",
    "make_three_way_partition",
    "make_top_k",
    "make_unary_transform",
    "make_unique_by_key",
    "make_upper_bound",
    "merge_sort",
    "pch_cache_dir",
    "radix_sort",
    "reduce_by_key",
    "reduce_into",
    "run_length_encode",
    "segmented_reduce",
    "segmented_sort",
    "select",
    "serialize",
    "three_way_partition",
    "top_k",
    "unary_transform",
    "unique_by_key",
    "upper_bound",
]

_BINDINGS_AVAILABLE = True  # of cuda.compute, which scripts ask for
