"""Generated pages are as the code says; links and commands of the hand-written ones exist."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
_spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
generate = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(generate)


@pytest.mark.parametrize("path", generate.FILES)
def test_generated_pages_are_fresh(path):
    assert (ROOT / path).read_text() == generate.FILES[path](), f"{path} is stale: run python docs/generate.py"


PAGES = [ROOT / "README.md", ROOT / "HACKING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_the_op_that_hacking_adds_works():
    """The block in HACKING, run as it stands there."""
    import math

    import cutile as ct
    from cutile.ops import math as family
    from cutile.ops._op import _REGISTRY, Sig
    from cutile.ops._types import evaluate
    from cutile.types import TileType

    block = next(b for b in re.findall(r"```python\n(.*?)```", (ROOT / "HACKING.md").read_text(), re.S) if "@op" in b)
    space = dict(vars(family))
    before = _REGISTRY.pop("erf", None)  # of a reader who has added it
    try:
        exec(block, space)
        t = TileType(ct.float32)
        got = evaluate(space["erf"], Sig((t,), (t,)), [np.float32(0.5)], {})
        assert abs(got - math.erf(0.5)) < 1e-7 and generate.op_clauses.clauses(space["erf"])
    finally:
        _REGISTRY.pop("erf", None)
        if before is not None:
            _REGISTRY["erf"] = before
