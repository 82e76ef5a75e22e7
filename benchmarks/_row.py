"""A row of kernels as users write them: arrays, plain NumPy of the same algorithm, a loop over blocks, a launch.

The modules `_rows_*` have the rows. Kernels are written the plain way, without thought of how they are run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cutile as ct

F16, F32, F64, I32 = np.float16, np.float32, np.float64, np.int32


@dataclass(frozen=True)
class Row:
    """Each way gets the input arrays and the output. `kernel` gets them too, and `constants` after them. `exact` gives
    the result from the inputs; without it, that of the plain way counts. `tolerance` is the allowed relative error.
    """

    name: str
    inputs: Callable[[], tuple[np.ndarray, ...]]
    output: Callable[[], np.ndarray]
    plain: Callable[..., None]
    loop: Callable[..., None]
    kernel: Any
    grid: tuple[int, ...]
    constants: tuple[Any, ...] = ()
    tolerance: float = 0.0
    exact: Callable[..., np.ndarray] | None = None

    def launcher(self, arrays: tuple[np.ndarray, ...], grid: tuple[int, ...] | None = None) -> Callable[[], None]:
        """A function that launches the kernel, over the row's grid or another one."""
        return functools.partial(ct.launch, None, grid or self.grid, self.kernel, (*arrays, *self.constants))

    def expected(self, inputs: tuple[np.ndarray, ...]) -> np.ndarray:
        if self.exact is not None:
            return self.exact(*inputs)
        output = self.output()
        output[...] = 0
        self.plain(*inputs, output)
        return output

    def verify(self, way: str, output: np.ndarray, expected: np.ndarray) -> None:
        """Fail if a result is wrong: only right results are timed."""
        got, want = output.astype(F64), expected.astype(F64)
        if not np.allclose(got, want, rtol=self.tolerance, atol=self.tolerance, equal_nan=True):
            raise AssertionError(f"{self.name}: {way} is wrong by {np.nanmax(np.abs(got - want)):.3g}")


def normal(*shape: int, seed: int = 0, dtype: Any = F32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, F32).astype(dtype)


def integers(low: int, high: int, *shape: int, seed: int = 0, dtype: Any = I32) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape, dtype=dtype)


def blocks(plain: Callable[..., None], rows: int, *, whole: int = 0) -> Callable[..., None]:
    """The loop over blocks whose blocks are `rows` rows of all arrays but the last `whole` inputs, each by `plain`."""
    def loop(*arrays: np.ndarray) -> None:
        split, shared, output = arrays[:len(arrays) - 1 - whole], arrays[len(arrays) - 1 - whole:-1], arrays[-1]
        for i in range(0, len(output), rows):
            plain(*(a[i:i + rows] for a in split), *shared, output[i:i + rows])
    return loop
