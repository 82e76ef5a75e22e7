"""Which code C launches for a grid, where a program has variants."""

import random

import pytest

import cutile as ct
from tests.gpu.extension import CuPyArray
from tests.runtime.launch_cache.launches import IN_C, LX, LY, TX, TY, X, Y, scaling


@pytest.mark.parametrize("x, y", [(X, Y), (TX, TY), (LX, LY)])
def test_the_variant_without_checks_serves_grids_whose_tiles_lie_inside(c, gpu, x, y):
    """`x` has three tiles. The variant is made while the usual code runs, and never serves a grid that is larger."""
    k = scaling()
    inside, beyond = ((1,), (3,), (3, 1), (2, 5, 3)), ((4,), (4, 1, 1), (2**20,))

    def run(names=(IN_C,)):
        gpu.calls.clear()
        gpu.launches.clear()
        for grid in (*inside, *beyond):
            ct.launch(77, grid, k, (x, y, 2.5, 16))
        assert set(names) == {n for n in gpu.names() if n.startswith("cuLaunch")}
        return [[one["function"][1] for one in gpu.launches if (one["grid"][0] <= 3) == here] for here in (True, False)]

    usual, unchecked = b"cubin 1", b"cubin 2"
    assert run(("cuLaunchKernel", IN_C)) == run() == [[usual] * 4, [usual] * 3]  # (3,) and (3, 1) are one grid
    assert len(gpu.built) == 1 and len(gpu.later) == 1
    gpu.work()
    assert len(gpu.built) == 2
    assert run(("cuLaunchKernel", IN_C)) == run() == [[unchecked] * 4, [usual] * 3]
    assert not gpu.later


def test_many_grids(c, gpu):
    """Each is decided once, by Python; from then on C code finds it among all others."""
    k, r = scaling(), random.Random(3)
    grids = [(r.randrange(1, 6), r.choice((1, 2, 65535)), r.randrange(1, 200)) for _ in range(400)]
    ct.launch(0, (1,), k, (X, Y, 1.0, 16))
    gpu.work()
    for names in ({"cuLaunchKernel", IN_C}, {IN_C}):
        gpu.calls.clear()
        for grid in grids:
            ct.launch(0, grid, k, (X, Y, 1.0, 16))
            assert gpu.launches[-1]["grid"] == grid
            assert bool(gpu.unchecked_lines[gpu.launches[-1]["function"][1]]) == (grid[0] <= 3)
        assert {n for n in gpu.names() if n.startswith("cuLaunch")} == names


def test_arrays_of_other_sizes_have_decisions_of_their_own(c, gpu):
    k = scaling()
    for turn in range(3):
        for n in (0, 1, 15, 16, 17, 47, 48, 50):
            for grid in ((1,), (2,), (3,), (4,)):
                ct.launch(77, grid, k, (CuPyArray(4096, (n,), (1,)), Y, 1.0, 16))
                inside = 16 * grid[0] <= n
                code = gpu.launches[-1]["function"][1]
                assert inside or not gpu.unchecked_lines[code], (n, grid)
                if inside and turn == 2:
                    assert gpu.unchecked_lines[code], (n, grid)
        gpu.work()


def test_hints_switch_variants_off(c, gpu, monkeypatch):
    monkeypatch.setenv("CUTILE_HINTS", "0")
    k = scaling()
    for grid in ((1,), (2,)):
        ct.launch(77, grid, k, (X, Y, 1.0, 16))
    assert not gpu.later and gpu.names().count(IN_C) == 1  # any grid is launched in C
