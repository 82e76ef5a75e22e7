"""The conformance suite under the sanitizer: what programs do on purpose is reported, and nothing else.

Tests are listed whose programs let blocks write the same elements in an order that does not matter to them, access what
is not there, pass overlapping arguments, or store padding: how many of a test's cases report which check.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.interp.sanitize.conformance_sweep import SUITE, swept

REPORTED = {
    "test_advanced_indexing.py": {
        "test_a_loaded_tile_does_not_change": {"alias": 1},
        "test_store": {"race": 30},
        "test_the_same_tile_or_place_for_all_blocks": {"race": 1},
    },
    "test_arrays.py": {
        "test_overlapping_arguments": {"alias": 1},
    },
    "test_atomics.py": {
        "test_what_lanes_out_of_range_give": {"bounds": 8},
    },
    "test_compute.py": {  # in place, which calls of algorithms may be
        "test_binary_transform": {"alias": 1},
        "test_bits_of_radix_sort": {"alias": 1},
        "test_double_buffers": {"alias": 2},
        "test_radix_sort": {"alias": 7},
        "test_radix_sort_preserves_its_input": {"alias": 1},
        "test_scans": {"alias": 1},
        "test_segmented_sort": {"alias": 1},
        "test_the_order_of_scans": {"alias": 1},
    },
    "test_compute_select.py": {
        "test_runs": {"alias": 6},
    },
    "test_enumerations.py": {
        "test_undetermined_padding": {"undetermined": 1},
    },
    "test_gather.py": {
        "test_a_false_promise": {"bounds": 1},
        "test_a_gathered_tile_does_not_change": {"alias": 2},
    },
    "test_hints.py": {
        "test_bounds_are_kept": {"bounds": 1},
    },
    "test_indices.py": {
        "test_wide_indices_of_wide_arrays": {"bounds": 1},
    },
    "test_load.py": {
        "test_a_loaded_tile_does_not_change": {"alias": 1},
        "test_one_tile_outside": {"race": 5, "bounds": 5},
        "test_slices_that_differ_by_block": {"bounds": 4},
        "test_tiles_outside": {"bounds": 2},
        "test_tiles_that_move_along_both_axes": {"bounds": 3},
    },
    "test_methods.py": {
        "test_every_access_to_items": {"bounds": 2, "race": 1},
        "test_list_indices_out_of_range": {"bounds": 4},
    },
    "test_pointers.py": {
        "test_arrays_at_pointers_beyond_the_argument": {"bounds": 1},
    },
    "test_raw_memory.py": {
        "test_an_array_without_elements": {"bounds": 1},
        "test_constant_masks_and_no_padding": {"undetermined": 1},
        "test_memory_beside_elements_that_coincide": {"bounds": 1},
        "test_memory_that_is_not_the_arrays": {"bounds": 3},
        "test_negative_offsets": {"race": 4},
        "test_no_padding_reads_as_undetermined_padding": {"undetermined": 1},
        "test_what_masked_and_foreign_lanes_give": {"bounds": 8},
    },
    "test_scatter.py": {
        "test_lanes_of_blocks": {"race": 90},
        "test_many_writes_to_one_element": {"race": 1},
        "test_the_same_value_or_place_for_all_blocks": {"race": 1},
    },
    "test_slices.py": {
        "test_slices_before_an_array_by_blocks_in_reverse": {"bounds": 8},
        "test_slices_beyond_an_array": {"bounds": 1},
    },
    "test_store.py": {
        "test_a_scalar_is_one_element": {"race": 1},
        "test_blocks_that_store_to_one_place": {"race": 1},
        "test_layouts": {"race": 10},
        "test_one_tile_outside": {"bounds": 5},
        "test_orders": {"race": 8},
        "test_the_same_tile_from_all_blocks": {"race": 1},
        "test_tiles_of_blocks": {"race": 70},
        "test_tiles_outside": {"bounds": 2},
    },
    "test_view_methods.py": {
        "test_store": {"race": 57},
        "test_tiles_outside": {"bounds": 4},
        "test_tiles_that_are_single_elements": {"race": 1},
    },
    "test_views.py": {
        "test_index_outside": {"bounds": 1},
    },
}


def counts(found: dict[str, dict[str, str]]) -> dict[str, dict[str, int]]:
    """How many cases of each test report each check."""
    counted: dict[str, Counter] = {}
    for case, checks in found.items():
        test = case.partition("::")[2].partition("[")[0]
        counted.setdefault(test, Counter()).update(checks.keys())
    return {test: dict(n) for test, n in counted.items()}


@pytest.mark.parametrize("file", [
    pytest.param(p.name, marks=() if p.name == "test_gather.py" else pytest.mark.deep)
    for p in sorted(SUITE.glob("test_*.py"), key=lambda p: -p.stat().st_size)])
def test_the_suite(file):
    found = swept(file)
    told = "\n".join(f"{case}: {message}" for case, checks in found.items() for message in checks.values())
    assert counts(found) == REPORTED.get(file, {}), told


def test_listed_files_exist():
    assert REPORTED.keys() <= {p.name for p in SUITE.glob("test_*.py")}
