"""What kernels take of a multiprocessor, as their cubins say."""

from __future__ import annotations

import functools
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cutile as ct
from cutile.dtypes import float16
from cutile.front.program import Embedded
from cutile.gpu.cubin_resources import Resources, blocks_held, read
from cutile.gpu.target import ARCHITECTURES, Target, parse_target
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir.tileiras import assemble
from cutile.runtime.options import Options
from cutile.types import ArrayType
from tests.gpu.tileir.lowering import TARGETS, module
from tests.gpu.tileir.tool import needs_tool

MATRIX = ArrayType(float16, 2)


def rows(x, y, n):
    t = ct.load(x, (ct.bid(0), 0), (1, n)).astype(ct.float32)
    ct.store(y, (ct.bid(0), 0), (t / ct.sum(t)).astype(y.dtype))


def product(x, y, z):
    acc = ct.zeros((128, 128), ct.float32)
    for k in range(ct.num_tiles(x, 1, (128, 64))):
        acc = ct.mma(ct.load(x, (ct.bid(0), k), (128, 64)), ct.load(y, (k, ct.bid(1)), (64, 128)), acc)
    ct.store(z, (ct.bid(0), ct.bid(1)), acc.astype(z.dtype))


@functools.cache
def cubin(fn, *kinds, target: str = "sm_90", **options) -> bytes:
    lowered = module(fn, *kinds, target=target, symbol="entry", options=Options(**options))
    return assemble(lowered.to_bytes(), target)


def row_kernel(n: int, **options) -> Resources:
    return read(cubin(rows, MATRIX, MATRIX, Embedded(n), **options), "entry")


# ------------------------------------------------------------------ against what was asked for


@needs_tool
def test_warps_are_threads():
    assert row_kernel(1024).threads == 128 and row_kernel(1024, num_worker_warps=8).threads == 256


@needs_tool
def test_occupancy_limits_registers_and_the_rest_is_spilled():
    free, tight = row_kernel(16384), row_kernel(16384, occupancy=8)
    assert free.registers > 64 >= tight.registers > 0 == free.stack < tight.stack
    assert tight.code > 0 and blocks_held(tight, Target(90)) == 8 > blocks_held(free, Target(90)) > 0


@needs_tool
def test_a_cluster_and_shared_memory():
    taken = read(cubin(product, MATRIX, MATRIX, MATRIX, num_ctas=2), "entry")
    assert taken.ctas == 2 and taken.shared >= 2 * 2 * 128 * 64  # a tile of each operand, shared by two blocks
    assert read(cubin(product, MATRIX, MATRIX, MATRIX), "entry").ctas == 1


@needs_tool
@pytest.mark.parametrize("target", TARGETS)
def test_of_each_target(target):
    """A sum over the block goes through a word of shared memory for each of its warps."""
    taken = read(cubin(rows, MATRIX, MATRIX, Embedded(1024), target=target), "entry")
    assert 0 < taken.registers < 64 and taken.stack == 0
    assert 4 * taken.warps <= taken.shared < 128 and blocks_held(taken, parse_target(target)) >= 8


# ------------------------------------------------------------------ against the assembler of PTX, which prints them

PTX = """.version 8.0
.target TARGET
.address_size 64
.visible .entry other(.param .u64 p) .reqntid 32 { ret; }
.visible .entry entry(.param .u64 p) .reqntid 96, 2, 1 {
  .reg .b64 %a<4>; .reg .b32 %v<8>;
  .local .align 4 .b8 own[200];
  .shared .align 4 .b8 common[1234];
  ld.param.u64 %a1, [p]; ld.global.u32 %v1, [%a1]; cvt.u64.u32 %a2, %v1; mov.u64 %a3, own; add.u64 %a3, %a3, %a2;
  st.local.u32 [%a3], %v1; ld.local.u32 %v2, [own + 8];
  mov.u32 %v4, common; st.shared.u32 [%v4], %v2; bar.sync 0; ld.shared.u32 %v3, [%v4 + 16];
  st.global.u32 [%a1], %v3; ret;
}"""


@needs_tool
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_as_ptxas_says(target, tmp_path):
    ptxas = tileiras.find_tool().path.with_name("ptxas")
    if not ptxas.is_file():
        pytest.skip(f"no ptxas beside {tileiras.find_tool().path}")
    (tmp_path / "k.ptx").write_text(PTX.replace("TARGET", target))
    said = subprocess.run([ptxas, "-v", f"-arch={target}", "k.ptx", "-o", "k.cubin"], cwd=tmp_path, text=True,
                          capture_output=True, check=True).stderr
    code = (tmp_path / "k.cubin").read_bytes()
    about = said[said.index("'entry'"):].partition("'other'")[0]
    registers, stack, shared = (int(re.search(p, about)[1]) for p in (
        r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes smem"))
    found = read(code, "entry")
    assert (found.registers, found.stack, found.shared, found.threads) == (registers, stack, shared, 192)
    assert (shared, stack) == (1234, 200) and read(code, "other").threads == 32


# ------------------------------------------------------------------ what is no cubin


@needs_tool
def test_a_kernel_that_is_not_there():
    code = cubin(product, MATRIX, MATRIX, MATRIX)
    with pytest.raises(ValueError, match="has no kernel product"):
        read(code, "product")
    for cut in (*range(0, 64, 7), 200, len(code) // 4, len(code) // 2):
        with pytest.raises(ValueError, match="no cubin|is damaged"):
            read(code[:cut], "entry")


def test_other_files():
    with pytest.raises(ValueError, match="does not begin as an ELF file"):
        read(b"PK\3\4" + bytes(100), "k")
    with pytest.raises(ValueError, match="for another machine"):
        read(b"\x7fELF\2\1" + bytes(100), "k")


@needs_tool
def test_damaged_cubins_are_ValueErrors():
    code = cubin(product, MATRIX, MATRIX, MATRIX)

    @given(st.lists(st.tuples(st.integers(0, len(code) - 1), st.integers(0, 255)), min_size=1, max_size=40))
    def check(changes):
        damaged = bytearray(code)
        for at, byte in changes:
            damaged[at] = byte
        try:
            read(bytes(damaged), "entry")
        except ValueError:
            pass

    check()


# ------------------------------------------------------------------ blocks of a multiprocessor


@pytest.mark.parametrize("target, threads, registers, shared, held", [
    (90, 128, 32, 0, 16), (90, 128, 128, 0, 4), (90, 128, 129, 0, 3), (90, 128, 255, 0, 2), (90, 256, 255, 0, 1),
    (90, 32, 16, 0, 32), (90, 1024, 64, 0, 1), (90, 128, 16, 100 << 10, 2), (90, 128, 16, 227 << 10, 1),
    (90, 128, 16, 228 << 10, 0), (86, 32, 16, 0, 16), (86, 128, 16, 0, 12), (120, 128, 16, 49 << 10, 2),
    (90, 512, 168, 0, 0)])
def test_blocks_held(target, threads, registers, shared, held):
    """By hand, from the table of compute capabilities: 65536 registers in four parts, 8 a thread at a time, …"""
    assert blocks_held(Resources(registers, 0, shared, threads, 1, 0), Target(target)) == held


def test_every_target_has_limits():
    for number in ARCHITECTURES:
        assert 16 <= blocks_held(Resources(16, 0, 0, 32, 1, 0), Target(number)) <= 32
