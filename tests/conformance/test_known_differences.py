"""The lists of known differences: how they are read, and that those in the repository can be."""

from __future__ import annotations

import pytest

from conformance.harness.known_differences import COMPILING, EXPORTING, FOLDER, LAUNCHING, PROGRAMS, TESTS, read


def test_lines(tmp_path):
    lines = ("# why", "", "test_a.py::test_x[*] | rounds twice | CAST-6", "program 12* | slow | policy 4")
    (tmp_path / "mine.txt").write_text("\n".join(lines))
    known = read("mine", folder=tmp_path)
    assert known.explains("test_a.py::test_x[f32]").says == "CAST-6"
    assert known.explains("program 123").reason == "slow"
    assert known.explains("test_a.py::test_y[f32]") is None
    assert known.report() == "known differences of mine: 2 listed, 2 met"


def test_what_is_not_met_is_said(tmp_path):
    (tmp_path / "mine.txt").write_text("a | b | c\n")
    assert read("mine", folder=tmp_path).report().endswith("1 listed, 0 met; not met: a")


def test_sections(tmp_path):
    text = ("a | b | c\n[launching]\nd | e | f\n# more\n\ng | h | i\n[compiling]\nj | k | l\n[programs]\nm | n | o\n"
            "[exporting]\np | q | r\n")
    (tmp_path / "mine.txt").write_text(text)
    for sections, found in ((), "adgjmp"), ((TESTS,), "a"), ((TESTS, LAUNCHING), "adg"), ((COMPILING,), "j"), (
            (PROGRAMS,), "m"), ((EXPORTING,), "p"):
        assert [d.pattern for d in read("mine", *sections, folder=tmp_path).lines] == [*found]


@pytest.mark.parametrize("line", ["[running]", "a | b", "a | | c", "a | b | c | d", "only words"])
def test_a_line_needs_three_parts(tmp_path, line):
    (tmp_path / "mine.txt").write_text(f"{line}\n")
    with pytest.raises(ValueError, match="mine.txt:1"):
        read("mine", folder=tmp_path)


def test_the_lists_of_the_repository():
    for path in FOLDER.glob("*.txt"):
        read(path.stem)
    assert not read("nobody").lines
