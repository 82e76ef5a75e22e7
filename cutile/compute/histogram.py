"""histogram_even: how many samples fall in each of some bins of equal width [HST-*].

A launch counts by atomic updates. In GPU memory it counts in many copies of the bins, so that fewer blocks update the
same counter at a time; another launch adds the copies up. Many samples in few bins are counted in pairs (joint.py), in
hardly any three at a time (triples.py), or, if too many are equal and bins are easily computed, some of them by
products of matrices (products.py).
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import cutile as ct
from cutile.compute import joint, products, triples
from cutile.compute.algorithm import Algorithm, is_wide, kernels_for, position, power_below
from cutile.compute.iterators.base import IteratorBase
from cutile.compute.iterators.memory import ARRAYS
from cutile.compute.iterators.values import INT64, bits_of, type_of_value
from cutile.compute.overlaps import check_apart
from cutile.compute.places import check_items
from cutile.compute.plans import Plan
from cutile.compute.readers import Immediate, Place
from cutile.compute.roles import COUNT, INPUT, OUTPUT, Role
from cutile.compute.value_types import Number, storage
from cutile.dtypes import DType, info

TILE = 1024  # samples of a tile
COPIES = 256  # most copies of the bins; a power of two
MANY = 1 << 24  # samples, which are counted by pairs or by products
WHOLE = math.lcm(2 * joint.PAIRS, 3 * triples.SIZE, products.STEP, TILE)  # samples: whole tiles of each way
CELLS = 1 << 20  # most counters in all copies, where there are several
LARGEST = (1 << 64) - 1


@dataclasses.dataclass(frozen=True)
class _Integers:
    """Bins of integers, exactly: (s - lower)·bins / (upper - lower), rounded down.

    compared  a dtype that holds all samples
    divided   an unsigned one that holds all products; where they are computed, all wraps
    unit      a bin is one integer
    simple    it is, and samples below all bins, as unsigned integers of 32 bits, are above all
    """

    compared: DType
    divided: DType
    unit: bool
    simple: bool

    def above(self, samples, levels):
        """How far simple samples lie above the lower level."""
        return ct.astype(ct.astype(samples, self.compared), ct.uint32) - ct.astype(levels[2], ct.uint32)

    def bin_of(self, samples, levels, bins):
        """The bin of each sample, and whether it falls in one. `levels`: the first and the last sample that do, the
        lower level, and the width of all bins.
        """
        s = ct.astype(samples, self.compared)
        inside = (s >= ct.astype(levels[0], self.compared)) & (s <= ct.astype(levels[1], self.compared))
        above = ct.astype(s, self.divided) - ct.astype(levels[2], self.divided)
        if not self.unit:
            above = above * bins // ct.astype(levels[3], self.divided)
        return ct.astype(above, ct.int32), inside


@dataclasses.dataclass(frozen=True)
class _Floats:
    """Bins of floats: (s - lower)·scale, rounded down. NaN falls in none."""

    number: Immediate
    simple = False

    def bin_of(self, samples, levels, bins):
        """As for integers. `levels`: the lower and the upper level, and the scale."""
        s = ct.astype(samples, self.number.dtype)
        lower, upper, scale = tuple(self.number.value(levels[k]) for k in ct.static_iter(range(3)))
        inside = (s >= lower) & (s < upper)
        scaled = (ct.where(inside, s, lower) - lower) * scale
        return ct.minimum(ct.astype(scaled, ct.int32), bins - 1), inside


@ct.kernel
def clear(counters, size: ct.Constant[int]):
    ct.store(counters, (ct.bid(0),), ct.zeros((size,), counters.dtype))


@ct.kernel
def clear_for(counters, way, mine: ct.Constant[int], size: ct.Constant[int]):
    """Clears counters that samples are counted in if the way is `mine`."""
    if ct.load(way, (0,), (1,)).item() == mine:
        ct.store(counters, (ct.bid(0),), ct.zeros((size,), counters.dtype))


def _counted(samples: IteratorBase, how: Any, many: int, bins: int, wide: bool) -> Any:
    """A kernel that counts samples in copies of the bins. `many`: how many levels it takes."""
    reader = samples.reader()

    @ct.kernel
    def count_samples(source: samples.annotation(wide), counters: ARRAYS[wide], levels: tuple[(INT64,) * many],
                      begin: int, n: position(wide), copies: ct.Constant[int], size: ct.Constant[int],
                      whole: ct.Constant[bool]):
        i = ct.bid(0) + begin
        place = Place(i, size, n, whole)
        found, inside = how.bin_of(reader.tile(source, place), levels, bins)
        if not whole:
            inside = inside & place.mask()
        ct.atomic_add(counters, ct.where(inside, found + i % copies * bins, -1), 1, check_bounds=True,
                      memory_order=ct.MemoryOrder.RELAXED)

    return count_samples


def _added(out: IteratorBase, bins: int, by_products: bool, wide: bool) -> Any:
    """A kernel that adds the copies of the bins up, and what products counted."""
    writer, columns = out.writer(), products.columns_of(bins) if by_products else 0

    @ct.kernel
    def add_copies(counters: ARRAYS[wide], matrices: ARRAYS[wide] if by_products else tuple[()],
                   target: out.annotation(False), copies: ct.Constant[int], size: ct.Constant[int]):
        place = Place(ct.bid(0), size, ct.int32(bins), False)
        index = ct.arange(copies, dtype=ct.int32)[:, None] * bins + place.index()[None, :]
        counts = ct.sum(ct.gather(counters, index, mask=(place.index() < bins)[None, :]), axis=0)
        if by_products:
            counts += products.counted(matrices, place.index(), columns)
        writer.put(target, place, counts)

    return add_copies


class _Level(NamedTuple):
    """An outer level: its dtype, and its value as a number of Python."""

    dtype: DType
    value: Any


def _level(value: Any, argument: str) -> _Level:
    try:
        t = type_of_value(value)
        if not isinstance(t, Number):
            raise TypeError(f"a level is a number, and this is {t}")
        return _Level(t.dtype, *t.numbers(value))
    except (TypeError, ValueError) as e:
        raise type(e)(f"argument `{argument}`: {e}") from None


def _number(value: Any, argument: str) -> int:
    """A host array of one integer, or the integer."""
    found = np.asarray(value).reshape(-1)
    if found.size != 1 or found.dtype.kind not in "iu":
        raise TypeError(f"argument `{argument}`: expected an integer, or a host array of one, got {value!r}")
    return int(found[0])


LEVEL = Role(lambda value, key, roots: key.append(_level(value, "")), _level)
NUMBER = Role(lambda value, key, roots: key.append(_number(value, "")), _number)


class HistogramEven(Algorithm):
    takes = {"d_samples": INPUT, "d_histogram": OUTPUT, "h_num_output_levels": NUMBER, "h_lower_level": LEVEL,
             "h_upper_level": LEVEL, "num_samples": COUNT}

    def __call__(self, temp_storage: Any, d_samples: Any, d_histogram: Any, h_num_output_levels: Any,
                 h_lower_level: Any, h_upper_level: Any, num_samples: int, stream: Any = None) -> int:
        """Count the samples, and give the bytes of temporary storage; with `temp_storage=None` only that."""
        return self.run(temp_storage, stream, d_samples, d_histogram, h_num_output_levels, h_lower_level, h_upper_level,
                        num_samples)

    def check(self, d_samples: IteratorBase, d_histogram: IteratorBase, h_num_output_levels: int,
              h_lower_level: _Level, h_upper_level: _Level) -> None:
        _checked(d_samples, h_num_output_levels, h_lower_level, h_upper_level)
        self.made = h_num_output_levels, Number(h_lower_level.dtype)

    def samples(self) -> Iterator[list]:
        """Of integers, levels further apart need wider products."""
        for samples, out, levels, lower, _, n in super().samples():
            for width in (levels - 1, levels, (1 << 32) // (levels - 1) + 1):
                yield [samples, out, levels, lower._replace(value=0), lower._replace(value=width), n]

    def sample_sizes(self) -> Iterator[dict[str, int]]:
        bins = self.made[0] - 1
        return (sizes | {"d_histogram": bins} for sizes in super().sample_sizes())

    def plan(self, plan: Plan, samples: IteratorBase, out: IteratorBase, levels: int, lower: _Level, upper: _Level,
             n: int) -> None:
        given = levels, Number(lower.dtype)
        for name, made, got in zip(("h_num_output_levels", "h_lower_level"), self.made or (), given, strict=False):
            if made != got:
                raise TypeError(f"argument `{name}`: this object was made for {made}, got {got}")
        how, numbers = _checked(samples, levels, lower, upper)
        bins = levels - 1
        check_items(plan, "num_samples", n, d_samples=samples)
        check_items(plan, "num_output_levels - 1", bins, d_histogram=out)
        check_apart(plan, {"d_histogram": out}, {"d_samples": samples}, max(n, bins))
        wide = is_wide(n, samples)
        copies = 1 if plan.on_host else power_below(max(1, CELLS // bins), COPIES)
        dtype, matrices, begin = ct.int64 if wide else ct.int32, (), 0
        counters = plan.array(bins * copies, dtype)
        plan.launch(-(-bins * copies // TILE), clear, counters, TILE)
        key = samples.kind, how, bins, wide
        if not plan.on_host and n >= MANY and bins <= joint.MOST:
            begin = n // WHOLE * (WHOLE // TILE)
            matrices = _by_pairs(plan, key, (samples, how, numbers, n), counters, dtype, copies)
        kernel = kernels_for(("histogram", *key), _counted, samples, how, len(numbers), bins, wide)
        plan.launch(-(-n // TILE) - begin, kernel, samples.state(n), counters, numbers, begin, n, copies, TILE,
                    n % TILE == 0)
        by_products = matrices != ()
        kernel = kernels_for(("histogram copies", out.kind, bins, by_products, wide), _added, out, bins, by_products,
                             wide)
        size = max(4096 // copies, 1)
        plan.launch(-(-bins // size), kernel, counters, matrices, out.state(bins), copies, size)


def _by_pairs(plan: Plan, key: tuple, what: tuple, counters: Any, dtype: DType, copies: int) -> Any:
    """The launches that count samples before the last WHOLE by triples, by pairs, or by products, as the samples are.
    Gives what products count in.
    """
    samples, how, numbers, n = what
    _, _, bins, wide = key
    made, state, parts = (samples, how, len(numbers), bins), samples.state(n), joint.copies_for(bins)
    pairs, way, matrices = plan.array(joint.cells_of(bins) * parts, dtype), plan.array(1, ct.int32), ()
    in_threes = n >= triples.MANY and triples.copies_for(bins) > 0
    kernel = kernels_for(("histogram way", *key), joint.looking, *made, wide)
    plan.launch(1, kernel, state, way, numbers, n, joint.FIRST, joint.SECOND, joint.most_equal(bins), joint.FEW,
                triples.most_equal(bins) if in_threes else -1)
    plan.launch(-(-joint.cells_of(bins) * parts // TILE), clear_for, pairs, way, joint.BY_PAIRS, TILE)
    whole = n // WHOLE
    if in_threes:
        _by_triples(plan, key, what, counters, way, dtype, copies)
    steps, each = whole * (WHOLE // (2 * joint.PAIRS)), joint.EACH if in_threes else 1
    kernel = kernels_for(("histogram by pairs", *key, each), joint.counting, *made, how.simple, each > 1, wide)
    plan.launch(-(-steps // each), kernel, state, counters, pairs, way, numbers, n, steps, each, copies, parts,
                joint.OFTEN, joint.ALIKE, joint.PAIRS)
    if how.simple:
        cells, steps = products.COPIES * products.ROWS * products.columns_of(bins), whole * (WHOLE // products.STEP)
        matrices = plan.array(cells, dtype)
        plan.launch(-(-cells // TILE), clear, matrices, TILE)
        kernel = kernels_for(("histogram by products", *key), products.counting, *made, wide)
        each = min(-(-steps // products.BLOCKS), products.STEPS)
        plan.launch(-(-steps // each), kernel, state, counters, matrices, way, numbers, n, steps, each, copies)
    kernel = kernels_for(("histogram pairs", bins, wide), joint.adding, bins, wide)
    plan.launch(-(-bins // joint.BINS) * parts, kernel, counters, pairs, way, copies, joint.BINS, joint.OTHERS)
    return matrices


def _by_triples(plan: Plan, key: tuple, what: tuple, counters: Any, way: Any, dtype: DType, copies: int) -> None:
    """The launches that count them by triples, if this is the way."""
    samples, how, numbers, n = what
    _, _, bins, wide = key
    parts, steps = triples.copies_for(bins), n // WHOLE * (WHOLE // (3 * triples.SIZE))
    cells = plan.array(triples.cells_of(bins) * parts, dtype)
    plan.launch(-(-triples.cells_of(bins) * parts // TILE), clear_for, cells, way, joint.BY_TRIPLES, TILE)
    kernel = kernels_for(("histogram by triples", *key), triples.counting, samples, how, len(numbers), bins, wide)
    plan.launch(-(-steps // triples.EACH), kernel, samples.state(n), counters, cells, way, numbers, n, steps, copies,
                parts, triples.EACH, joint.OFTEN, joint.ALIKE, triples.SIZE)
    kernel = kernels_for(("histogram triples", bins, wide), triples.adding, bins, wide)
    plan.launch((bins + 1) * -(-(bins + 1) // triples.STRETCH) * parts, kernel, counters, cells, way, copies)


def _checked(samples: IteratorBase, levels: int, lower: _Level, upper: _Level) -> tuple[Any, tuple[int, ...]]:
    """How bins are computed, and the numbers that this takes. Raises errors of the arguments."""
    if not isinstance(samples.value_type, Number):
        raise TypeError(f"argument `d_samples`: samples are numbers, and these are {samples.value_type}")
    if levels < 2:
        raise ValueError(f"argument `num_output_levels` is {levels}: one bin has two levels")
    if lower.dtype != upper.dtype:
        raise TypeError(f"the lower level is of {lower.dtype.name}, and the upper level of {upper.dtype.name}: pass "
                        f"both of one dtype")
    if not lower.value < upper.value:
        raise ValueError(f"the lower level, {lower.value}, is not below the upper one, {upper.value}")
    return _way(samples.value_type.dtype, lower.dtype, lower.value, upper.value, levels - 1)


def _way(sample: DType, level: DType, lower: Any, upper: Any, bins: int) -> tuple[Any, tuple[int, ...]]:
    """How bins are computed, and the levels that this takes."""
    if info(sample).floating or info(level).floating:
        return _of_floats(sample, level, lower, upper, bins)
    width = upper - lower
    if width * bins > LARGEST:
        raise RuntimeError(f"the width of all bins, {width}, times their number, {bins}, is beyond uint64: pass fewer "
                           f"bins, or floats as levels")
    limits = np.iinfo(storage(Number(sample))) if sample != ct.bool_ else np.iinfo(np.uint8)
    compared = sample if sample.bitwidth >= 32 else ct.int32
    divided = ct.uint32 if sample.bitwidth <= 32 and width * bins < 1 << 32 else ct.uint64
    first, last = max(lower, int(limits.min)), min(upper - 1, int(limits.max))
    if first > last:  # no sample is between them
        first, last = 1, 0
    numbers = tuple(bits_of(v, ct.int64) for v in (first, last, lower, width))
    held, unit = np.iinfo(storage(Number(compared))), width == bins
    simple = unit and sample.bitwidth <= 32 and held.min <= lower and upper - 1 <= held.max
    return _Integers(compared, divided, unit, simple), numbers


def _of_floats(sample: DType, level: DType, lower: Any, upper: Any, bins: int) -> tuple[Any, tuple[int, ...]]:
    widths = [d.bitwidth for d in (sample, level) if info(d).floating]
    dtype = ct.float64 if max(widths) == 64 else ct.float32
    to = storage(Number(dtype)).type
    with np.errstate(over="ignore"):
        low, high = to(lower), to(upper)
        width = high - low
    if not (np.isfinite(width) and low < high):
        raise ValueError(f"the levels {lower} and {upper} have no finite width above zero in {dtype.name}")
    return _Floats(Immediate(dtype, True)), tuple(bits_of(v, dtype) for v in (low, high, to(bins) / width))


def make_histogram_even(d_samples: Any, d_histogram: Any, h_num_output_levels: Any, h_lower_level: Any,
                        h_upper_level: Any, num_samples: int, compute_capability: Any = None) -> HistogramEven:
    """An object that counts samples in bins, for arguments of the same kinds.

    Parameters
    ----------
    d_samples, d_histogram, h_num_output_levels, h_lower_level, h_upper_level, num_samples
        As in `histogram_even`, the levels in arrays of one item; arrays may be `ProxyArray`.
    compute_capability : optional
        The GPUs that it may run on: 90, (9, 0), "9.0", "90", or a list of these. None: all.

    Returns
    -------
    object
        Call it with `temp_storage, …these six…, stream=None`.

    Raises
    ------
    TypeError, ValueError
        As `histogram_even` does; a call with another kind of argument, or another operator, is a TypeError.

    Examples
    --------
    >>> samples, bins = np.array([0.5, 2.5, 2.7]), np.zeros(3, np.int32)
    >>> args = samples, bins, np.array([4]), np.array([0.0]), np.array([3.0]), 3
    >>> histogram = ct.compute.make_histogram_even(*args)
    >>> storage = np.empty(histogram(None, *args), np.uint8)
    >>> nbytes = histogram(storage, *args)
    >>> bins
    array([1, 0, 2], dtype=int32)
    """
    return HistogramEven((), compute_capability, d_samples=d_samples, d_histogram=d_histogram,
                         h_num_output_levels=h_num_output_levels, h_lower_level=h_lower_level,
                         h_upper_level=h_upper_level)


def histogram_even(d_samples: Any, d_histogram: Any, num_output_levels: int, lower_level: Any, upper_level: Any,
                   num_samples: int, stream: Any = None) -> None:
    """Count how many samples fall in each of some bins of equal width.

    Parameters
    ----------
    d_samples : array or iterator of numbers
        The samples. Those below `lower_level`, those from `upper_level` on, and NaN fall in no bin.
    d_histogram : array or iterator
        Item k becomes the number of samples in bin k; what it held before does not count.
    num_output_levels : int
        The number of bins, plus one.
    lower_level, upper_level : number
        Where the first bin begins, and the last one ends, both of one dtype. A Python int is an int64, a float a
        float64.
    num_samples : int
        How many samples there are; 2^31 and more are supported.
    stream : optional
        As in `ct.launch`.

    Raises
    ------
    TypeError
        If the levels have different dtypes.
    ValueError
        If there are fewer than two levels, the lower is not below the upper, an array has fewer items, or both share
        memory.
    RuntimeError
        If samples and levels are integers, and the width of all bins times their number is beyond uint64.

    Notes
    -----
    Bins of integers are exact. Floats are scaled in the wider dtype of both, float32 at least, so that a sample at the
    edge of a bin may fall in the next one.

    [HST-1.bins] [HST-2.integers] [HST-2.floats]

    Examples
    --------
    >>> x = np.array([0.5, 1.5, 1.75, 3.0, 9.0], np.float32)
    >>> counts = np.zeros(4, np.int32)
    >>> ct.compute.histogram_even(x, counts, 5, 0.0, 4.0, len(x))
    >>> counts
    array([1, 2, 0, 1], dtype=int32)
    """
    HistogramEven.once((), stream, d_samples, d_histogram, num_output_levels, lower_level, upper_level, num_samples)
