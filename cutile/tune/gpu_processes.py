"""An executor with one process for each GPU."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor


def gpu_processes(gpus: Sequence[int] | None = None) -> ProcessPoolExecutor:
    """An executor with one process for each GPU of this machine, for `ct.autotune(..., executor=...)`.

    Parameters
    ----------
    gpus : sequence of int, optional
        The numbers of the GPUs. All by default.

    Returns
    -------
    concurrent.futures.ProcessPoolExecutor
        Each of its processes sees one GPU. `shutdown` ends them.

    Raises
    ------
    TypeError
        `gpus` is no list of numbers.
    ValueError
        `gpus` is empty, or there is no GPU.

    Notes
    -----
    [TUN-10]

    Examples
    --------
    >>> with ct.tune.gpu_processes() as processes:  # doctest: +SKIP
    ...     matmul = ct.autotune(configs, executor=processes)(matmul)
    ...     matmul(a, b)
    """
    import multiprocessing  # loaded when they are needed
    from concurrent.futures import ProcessPoolExecutor

    if gpus is not None and (isinstance(gpus, str) or not isinstance(gpus, Iterable)):
        raise TypeError(f"gpus is a list of numbers of GPUs, such as [0, 1], not {gpus!r:.100}")
    numbers = list(_all() if gpus is None else gpus)
    for n in numbers:
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise TypeError(f"gpus holds the numbers of GPUs, ints from 0 on, not {n!r:.100}")
    if not numbers:
        raise ValueError("gpu_processes() needs a GPU, and there is none")
    spawn = multiprocessing.get_context("spawn")
    left = spawn.SimpleQueue()
    for n in _visible(numbers):
        left.put(n)
    return ProcessPoolExecutor(len(numbers), spawn, _see_one, (left,))


def _all() -> range:
    from cutile.errors import TileUnsupportedFeatureError
    from cutile.gpu.driver import DriverError, driver

    try:
        return range(driver().count())
    except (DriverError, TileUnsupportedFeatureError):  # the latter where there is no driver
        return range(0)


def _visible(numbers: Sequence[int]) -> list[str]:
    """GPUs as CUDA_VISIBLE_DEVICES names them, from their numbers among those that this process sees."""
    names = [n.strip() for n in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if n.strip()]
    return [names[n] if n < len(names) else str(n) for n in numbers]


def _see_one(left: Any) -> None:
    """The first thing that a process does: take a GPU that no other one has."""
    os.environ["CUDA_VISIBLE_DEVICES"] = left.get()
