"""The tables name files that exist, for every file of `front`, `analysis` and `passes` that is mutated."""

from pathlib import Path

import pytest

from tests.mutation.sites import GROUPS, ROOT
from tests.mutation.suite_files import OF_FRONT, OF_PASSES, files_about


@pytest.mark.parametrize("group", ["front", "passes"])
def test_all_files_exist(group):
    for path in GROUPS[group]:
        if Path(path).stem != "__init__":
            assert files_about(path) and all((ROOT / f).is_file() for f in files_about(path)), path


def test_tables_name_what_is_mutated():
    assert {f"cutile/front/{n}.py" for n in OF_FRONT} <= {*GROUPS["front"]}
    assert {*OF_PASSES} == {Path(p).stem for p in GROUPS["passes"]} - {"__init__"}


def test_other_rooms_have_none():
    assert files_about("cutile/gpu/hints.py") == [] == files_about("cutile/front/nothing.py")
    assert files_about("cutile/interp/fma.py") == []
