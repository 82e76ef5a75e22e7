"""The table names files that exist, for every file of `front` that is mutated."""

from pathlib import Path

from tests.mutation.sites import GROUPS, ROOT
from tests.mutation.suite_files import OF_FRONT, files_about


def test_all_files_exist():
    for path in GROUPS["front"]:
        if Path(path).stem != "__init__":
            assert files_about(path) and all((ROOT / f).is_file() for f in files_about(path)), path
    assert {f"cutile/front/{n}.py" for n in OF_FRONT} <= {*GROUPS["front"]}


def test_other_rooms_have_none():
    assert files_about("cutile/passes/fma.py") == [] == files_about("cutile/front/nothing.py")
