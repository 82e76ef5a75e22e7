"""tests/ mirrors cutile/ file for file: tests/a/test_b.py tests cutile/a/b.py, test_p.py the package p.

Modules that other files test are listed here, each with the file and the reason.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

TESTED_ELSEWHERE = {
    "analysis/guards": ("analysis/test_inside.py", "what they say of tiles is compared with what blocks access"),
    "__init__": ("test_api.py", "its names are the public API"),
    "__main__": ("cli/test_main.py", "it calls cli/main.py and nothing else"),
    "_support/strides": ("runtime/test_arrays.py", "arrays are read by it"),
    "_version": ("test_api.py", "it is one string, which `ct.__version__` shows"),
    "compilation/calling_convention": ("compilation/test_mangling.py", "symbols begin with the convention"),
    "compilation/demangling": ("compilation/test_mangling.py", "what is mangled is demangled again"),
    "compilation/launch_signature": ("compilation/test_derive.py", "a launch derives constraints and a symbol"),
    "compute/arrays": ("compute/test_transform.py", "each operand is made of them"),
    "compute/blocks": ("compute/test_reduce.py", "reductions are made of them"),
    "compute/digits": ("compute/test_radix.py", "radix sorts are made of them"),
    "compute/splits": ("compute/test_compaction.py", "compaction does what they say"),
    "compute/lanes": ("compute/test_merge.py", "merging is made of them"),
    "compute/well_known": ("compute/test_operators.py", "they are operators"),
    "compute/pairs": ("compute/test_radix.py", "sorts move keys and values by them"),
    "compute/readers": ("compute/test_iterators.py", "they read and write what iterators stand for"),
    "compute/iterators/base": ("compute/test_iterators.py", "it is the base of the iterators there"),
    "compute/iterators/discard": ("compute/test_iterators.py", "it is an output among others"),
    "compute/iterators/transform": ("compute/test_iterators.py", "they are inputs and outputs among others"),
    "compute/initial": ("compute/test_scan.py", "scans take initial values of the host and of GPU memory"),
    "compute/roles": ("compute/test_plans.py", "plans are found by what roles read"),
    "compute/steps": ("compute/test_plans.py", "plans are made of them"),
    "runtime/ahead": ("compute/test_ahead.py", "objects of algorithms are compiled ahead"),
    "runtime/repeated": ("compute/test_plans.py", "plans run such launches"),
    "runtime/scratch": ("compute/test_plans.py", "calls without temporary storage take it there"),
    "compute/algorithms": ("compute/test_proxies.py", "they give names of other modules"),
    "compute/determinism": ("compute/test_proxies.py", "they give names of other modules"),
    "compute/op": ("compute/test_proxies.py", "they give names of other modules"),
    "compute/struct": ("compute/test_proxies.py", "they give names of other modules"),
    "compute/types": ("compute/test_proxies.py", "they give names of other modules"),
    "compute/typing": ("compute/test_proxies.py", "they give names of other modules"),
    "front/element_math": ("front/test_element_calls.py", "element functions call them through the table there"),
    "ir/leaves": ("front/test_term_joins.py", "joins are made of leaves"),
    "front/assignment": ("front/test_stmt.py", "targets stand in statements"),
    "front/attribute_lookup": ("front/test_dependencies.py", "dependencies are looked up with it"),
    "front/attributes": ("front/test_expr.py", "attributes stand in expressions"),
    "front/callables": ("front/test_call.py", "what may be called shows in calls"),
    "front/conditions": ("front/test_expr.py", "conditions stand in expressions"),
    "front/control_flow": ("front/test_stmt.py", "branches and returns are statements"),
    "front/functions": ("front/test_call.py", "functions are typed where they are called"),
    "functions/entry": ("functions/test_tile_function.py", "functions are called through it"),
    "functions/autotune": ("functions/test_tuned.py", "it makes the functions that are tested there"),
    "functions/tuning_inputs": ("functions/test_tuned.py", "searches measure on them"),
    "torch/schema": ("torch/test_operators.py", "operators have one"),
    "tune/candidates": ("test_tune.py", "a search is made of them"),
    "functions/traced": ("functions/test_jax.py", "arrays of JAX go through it"),
    "gpu/grid_functions": ("runtime/launch_cache/test_variants.py", "C code looks up what Python has entered"),
    "front/items": ("front/test_expr.py", "items stand in expressions"),
    "front/proxies": ("front/test_static.py", "proxies exist only inside static_eval"),
    "front/records": ("front/test_call.py", "dataclasses are made by calls"),
    "front/static_names": ("front/test_static.py", "the constructs are tested by what they do"),
    "gpu/tileir/arrays": ("gpu/tileir/rules/test_memory.py", "arrays are lowered for loads and stores"),
    "gpu/tileir/module": ("gpu/tileir/test_builder.py", "it is plain data, which the builder makes"),
    "gpu/tileir/rules/_regular": ("gpu/tileir/rules/test_math.py", "elementwise ops go through it"),
    "gpu/tileir/rules/atomics": ("gpu/tileir/rules/test_memory.py", "atomics are accesses to memory"),
    "gpu/tileir/rules/views": ("gpu/tileir/rules/test_memory.py", "views are arrays of which tiles are loaded"),
    "interp/codegen/batch_unit": ("interp/codegen/test_batch.py", "the functions of a kernel are tested together"),
    "interp/codegen/emit": ("interp/codegen/test_block.py", "the base of the emitters is tested through them"),
    "interp/codegen/exits": ("interp/codegen/test_batch.py", "programs with every kind of exit are run"),
    "interp/codegen/interleave": ("interp/exec/test_turns.py", "blocks that take turns run the code that it emits"),
    "interp/codegen/templates": ("interp/codegen/test_block.py", "debuggers show what the user's variables hold"),
    "interp/debugger": ("interp/test_schedule.py", "a debugger decides the schedule"),
    "interp/memory/irregular_tiles": ("interp/memory/test_tile_locations.py", "it is one of the answers of locate"),
    "interp/memory/strided_tile": ("interp/memory/test_tile_locations.py", "tiles are read through it"),
    "interp/memory/tile_copy": ("interp/memory/test_array_view.py", "arrays read and write tiles through it"),
    "interp/sanitize/run_checked": ("interp/sanitize/test_findings.py", "it raises what was found"),
    "interp/sanitize/cells": ("interp/sanitize/test_race.py", "memory of many layouts is told apart"),
    "interp/sanitize/race_ops": ("interp/sanitize/test_race.py", "what they report is tested"),
    "interp/sanitize/reach": ("interp/sanitize/test_undetermined.py", "what accesses reach is read by it"),
    "interp/sanitize/shadows": ("interp/sanitize/test_undetermined.py", "ops are compared with what padding changes"),
    "interp/sanitize/shadowing": ("interp/sanitize/test_undetermined.py", "programs are rewritten by it"),
    "interp/sanitize/trap_ops": ("interp/sanitize/test_traps.py", "what they report is tested"),
    "interp/sanitize/taint": ("interp/sanitize/test_undetermined.py", "values pass through all kinds of control flow"),
    "interp/sanitize/undetermined_ops": ("interp/sanitize/test_undetermined.py", "what they report is tested"),
    "interp/sanitize/instrument": ("interp/sanitize/test_bounds.py", "programs with checks are run"),
    "interp/run_blocks": ("interp/test_schedule.py", "schedules run through it"),
    "ir/nodes": ("ir/test_walk.py", "it is plain data, which walks and rewrites use"),
    "ir/parse": ("ir/test_text.py", "what is printed is parsed again"),
    "ir/reader": ("ir/test_text.py", "the parser reads through it"),
    "jax/description": ("jax/test_calls.py", "calls are read by it"),
    "ops/_access": ("ops/test_memory.py", "ops on memory share it"),
    "ops/_arguments": ("ops/test_arithmetic.py", "typing rules read their arguments through it"),
    "ops/_combine": ("ops/test_reduce.py", "reductions and scans share it"),
    "ops/_constants": ("ops/test_arithmetic.py", "ops on constants are folded by it"),
    "ops/_examples": ("ops/test_documentation.py", "a table, whose rows are run there"),
    "ops/_op": ("ops/test_registry.py", "every op is an instance of its class"),
    "ops/_options": ("ops/test_arithmetic.py", "arithmetic has all the options"),
    "ops/_parameter_docs": ("ops/test_documentation.py", "a table, whose rows are compared with the ops there"),
    "ops/_promotion": ("ops/test_arithmetic.py", "operands are brought together by it"),
    "analysis/gpus": ("functions/test_profiling.py", "profiles compare with them"),
    "runtime/array_ref": ("runtime/test_arrays.py", "readers are tested by the descriptions that they give"),
    "runtime/restoring": ("test_tune.py", "only searches put arrays back"),
}


def modules() -> dict[str, Path]:
    """The modules of cutile that define something, by path without `.py`; a package by the path of its folder."""
    found = {}
    for path in sorted((ROOT / "cutile").rglob("*.py")):
        name = path.relative_to(ROOT / "cutile").with_suffix("").as_posix()
        if path.name != "__init__.py" or re.search(r"^(def|class) ", path.read_text(), re.M):
            found[name.removesuffix("/__init__")] = path
    return {**found, "__init__": ROOT / "cutile" / "__init__.py"}


def own_tests(name: str) -> list[Path]:
    """Where the tests of a module stand, if it has some of its own."""
    folder, stem = (ROOT / "tests" / name).parent, Path(name).name.lstrip("_")
    return [p for p in (folder / f"test_{stem}.py", folder / stem / f"test_{stem}.py") if p.is_file()]


@pytest.mark.parametrize("name", modules())
def test_a_module_has_its_tests_or_a_reason(name):
    assert own_tests(name) or name in TESTED_ELSEWHERE, (
        f"cutile/{name}.py has no test file: write tests/{Path(name).parent}/test_{Path(name).name.lstrip('_')}.py, or "
        f"say in {Path(__file__).name} which file tests it, and why")


@pytest.mark.parametrize("name", TESTED_ELSEWHERE)
def test_the_list_is_up_to_date(name):
    path, why = TESTED_ELSEWHERE[name]
    assert name in modules(), f"there is no cutile/{name}.py any more"
    assert not own_tests(name), f"cutile/{name}.py has tests of its own now"
    assert "def test_" in (ROOT / "tests" / path).read_text() and why
