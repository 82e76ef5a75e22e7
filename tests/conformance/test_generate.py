"""Generated programs are legal, mean what the generator says, and cover the language."""

from __future__ import annotations

import re
import subprocess
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.generate import Options, generate
from conformance.generate.counts import Counts
from conformance.generate.dtypes import DTYPES, SM100
from conformance.generate.language import ALLOWED, KINDS
from conformance.generate.tree import Def, bare, exprs
from conformance.referee import compare, implementation

INTERP, REFERENCE = implementation("cutile:interp"), implementation("reference")


def test_the_same_seed_gives_the_same_program():
    assert generate(7).source() == generate(7).source()
    assert generate(7).source() != generate(8).source()


@pytest.mark.parametrize("seed", range(12))
def test_the_interpreter_agrees_with_what_the_generator_means(seed):
    verdict = compare(generate(900_000 + seed), INTERP, REFERENCE)
    assert verdict.kind in ("same", "within"), f"{verdict}\n{generate(900_000 + seed).source()}"


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.randoms(use_true_random=False))
def test_hypothesis_can_draw_programs(rng):
    assert compare(generate(rng, Options(statements=2)), INTERP, REFERENCE).kind in ("same", "within", "inconclusive")


def test_a_program_runs_as_a_script(tmp_path):
    program = generate(3)
    path = tmp_path / "program.py"
    path.write_text(program.source())
    out = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert not out.returncode, out.stderr
    assert all(p.name in out.stdout for p in program.params)


def test_constants_that_the_official_implementation_rounds():
    """It rounds them to float32 first [D-1], so programs do not compare such constants in float64 with it."""
    inexact, f64 = re.compile(r"\* math\.(pi|e)\b"), {True: 0, False: 0}
    for official in f64:
        for seed in range(400):
            for s in generate(seed, Options(official=official)).statements():
                for e in exprs(s):
                    f64[official] += sum(("constant", "f64") in x.ops for x in e.walk() if inexact.search(x.text))
    assert not f64[True]
    assert f64[False]


def test_counts_of_many_programs():
    """Every op and statement occurs; most programs have a loop or branch, and rounding that reaches a store."""
    counts = Counts()
    for seed in range(900):
        counts.add(generate(seed))
    by_op = counts.by_op()
    assert not [o for o in ALLOWED if not by_op[o]]
    assert not [k for k in KINDS if not counts.kinds[k]]
    assert not [name for name in counts.lacking() if "median" in name or name.startswith(("with", "distinct"))]
    assert str(counts).split()[:2] == ["programs", "900,"]


def test_options_leave_out_what_an_implementation_lacks():
    for seed in range(300):
        p = generate(seed, Options(official=True, sm_100=False))
        ops = {o for o, _ in p.ops()}
        assert "mma_scaled" not in ops and not p.features
        assert not {o for o, d in p.ops() if o in ("floordiv", "divmod", "abs") and d[0] == "u"}
        assert not {d for o, d in p.ops() if o == "cdiv" and "f" in d}
        assert not {d for o, d in p.ops() if o in ("reduce", "scan") and DTYPES[d].restricted}
        assert not {d for _, d in p.ops() if d in SM100}
        source = p.source()
        assert "[::-1]," not in source
        texts = [x.text for s in p.statements() for e in exprs(s) for x in e.walk()]
        assert not [t for t in texts if "astype(" in t and ("Mode.RM" in t or "Mode.RP" in t)]
        assert not re.search(r"ct\.(reduce|scan)\(.*tfloat32", source)


def test_the_number_of_the_block_is_assigned_once():
    for seed in range(400):
        assert sum("b" in getattr(s, "names", ()) for s in generate(seed).statements()) == 1


def test_blocks_write_apart():
    """Running the blocks in another order gives the same arrays: no block reads or writes elements of another block."""
    from conformance.generate import reference
    from conformance.referee.implementations import flat, loaded

    for seed in range(25):
        p = generate(seed)
        with loaded(p) as modules:
            first, second = modules("cutile").arguments(), modules("cutile").arguments()
        reference.run(p, list(first))
        _run_backwards(p, list(second))
        for (name, x), (_, y) in zip(flat(p, first), flat(p, second), strict=True):
            assert x.tobytes() == y.tobytes(), (seed, name)


def _run_backwards(program, arguments) -> None:
    from conformance.generate import reference

    memory = {p.name: a for p, a in zip(program.params, arguments, strict=True)}
    with np.errstate(all="ignore"):
        for bid in reversed(list(np.ndindex(*program.grid))):
            ctx = reference.Block(program.grid, bid, memory)
            ctx.functions = {h.name: (h, {}) for h in program.helpers if isinstance(h, Def)}
            reference.execute(program.body, reference._numbers(memory), ctx)


@pytest.mark.parametrize("text, plain", [
    ("(a + b)", "a + b"), ("(a + b) * (c)", "(a + b) * (c)"), ("(a, b)", "(a, b)"), ("a", "a"),
    ("((a, b)[0] + c)", "(a, b)[0] + c"), ("(f(a, b))", "f(a, b)"),
])
def test_bare(text, plain):
    assert bare(text) == plain


def test_a_random_may_stand_for_the_seed():
    assert generate(Random(5)).body
