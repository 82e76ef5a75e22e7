"""Notebooks say what their pages say, and lead where these lead; puzzles can be solved, and are not solved at first."""

from __future__ import annotations

import importlib.util
import json
import linecache
import re
import sys
from pathlib import Path

import pytest

import cutile as ct
from tools import notebooks

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples" / "puzzles"


SPEC = importlib.util.spec_from_file_location("puzzle_checks", FOLDER / "checks.py")
CHECKS = sys.modules["puzzle_checks"] = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(CHECKS)
# A mistake that is easily made in each puzzle, as a change of the solution's text.
MISTAKES = {
    "celsius": ("t - 32", "t - 30"),
    "midpoints": ("ct.load(y, i,", "ct.load(y, 0,"),
    "spread": ("PaddingMode.NEG_INF", "PaddingMode.ZERO"),
    "rings": ("rows - 1 - i", "rows - i"),
    "mirror": ("x.shape[1] - 1 - column", "x.shape[1] - column"),
    "ballots": ("padding_value=-1", "padding_value=0"),
    "balance": ("before + ct.sum(", "ct.sum("),
    "nearest": ('ct.where(there, distance, float("inf"))', "distance"),
}


def kernel_of(text: str, name: str):
    """The kernel that some code defines."""
    file = f"<puzzle {name} {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"ct": ct}
    exec(compile(text, file, "exec"), space)
    return space[name]


def template(name: str) -> str:
    """The kernel of the page, as readers get it."""
    page = (ROOT / "docs" / "puzzles.md").read_text()
    [cell] = [c for c in re.findall(r"```{code-cell} python\n(.*?)```", page, re.S) if f'check("{name}"' in c]
    return cell.partition("\ncheck(")[0]


def solution(name: str) -> str:
    source = (FOLDER / "solutions.py").read_text()
    return "@ct.kernel\n" + next(p for p in source.split("@ct.kernel\n") if p.startswith(f"def {name}("))


@pytest.mark.parametrize("name", CHECKS.PUZZLES)
def test_a_puzzle_has_a_solution_and_is_not_solved_at_first(name):
    solved, first = (CHECKS.result(name, kernel_of(text, name)) for text in (solution(name), template(name)))
    assert solved.solved, solved
    assert not first.solved and "Error in case" not in first.text, first


@pytest.mark.parametrize("name", CHECKS.PUZZLES)
def test_a_mistake_is_noticed(name):
    right, wrong = MISTAKES[name]
    assert right in solution(name)
    assert not CHECKS.result(name, kernel_of(solution(name).replace(right, wrong), name)).solved


def test_a_kernel_that_is_refused_is_told_why():
    result = CHECKS.result("celsius", kernel_of("@ct.kernel\ndef k(x, out):\n    ct.load(x, 0, 3)\n", "k"))
    assert not result.solved and "power of two" in result.text


def test_a_script_prints_what_a_check_finds(capsys):
    CHECKS.check("celsius", kernel_of(solution("celsius"), "celsius"))
    CHECKS.check("celsius", kernel_of(template("celsius"), "celsius"))
    solved, not_yet = capsys.readouterr().out.splitlines()
    assert solved == "celsius: Solved: 2 cases are right."
    assert not_yet.startswith("celsius: Not yet:") and "(0,) was never stored" in not_yet


def test_the_note_on_what_is_meant_does_not_follow_a_solution(capsys):
    CHECKS.check("ballots", kernel_of(solution("ballots").replace(", check_bounds=True", ""), "ballots"))
    said = capsys.readouterr()
    assert "Solved" in said.out and said.err == ""


def test_a_picture_frames_what_is_wrong():
    result = CHECKS.result("rings", kernel_of(template("rings"), "rings"))
    wanted, yours = result._repr_html_().split("</figure>")[:2]
    assert "#d00" not in wanted and yours.count("#d00") == 128


@pytest.mark.parametrize("page", notebooks.PAGES)
def test_a_notebook_has_the_cells_of_its_page(page, tmp_path):
    path = ROOT / "docs" / f"{page}.md"
    made = notebooks.notebook(path, ROOT / "notebooks")
    cells = re.findall(r"```{code-cell} python\n(.*?)```", path.read_text(), re.S)
    code = ["".join(c["source"]) for c in made["cells"] if c["cell_type"] == "code"]
    assert code == ["".join(x for x in c.splitlines(True) if x[0] != ":").strip("\n") for c in cells] and code
    text = "".join(line for c in made["cells"] if c["cell_type"] == "markdown" for line in c["source"])
    assert "```{" not in text and "file_format" not in text
    for link in re.findall(r"\]\(([\w./-]+)", re.sub(r"`[^`\n]*`", "", text)):
        assert (ROOT / "notebooks" / link).resolve().exists(), link


def test_all_are_written(tmp_path):
    written = notebooks.write(tmp_path / "made")
    assert [p.stem for p in written] == ["start", "softmax", "matmul", "attention", "puzzles"]
    assert all(json.loads(p.read_text())["nbformat"] == 4 for p in written)
