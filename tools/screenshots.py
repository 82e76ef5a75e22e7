"""Makes the pictures of pages in docs/images: python -m tools.screenshots. It needs playwright and a browser."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import cutile as ct
from tests.pictures.browser import browser, opened

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"


@ct.kernel
def smooth(x, out):
    i = ct.bid(0)
    left = ct.gather(x, i * 64 + ct.arange(64, dtype=ct.int32) - 1, check_bounds=True, padding_value=0.0)
    here = ct.load(x, i, (64,), padding_mode=ct.PaddingMode.ZERO)
    ct.store(out, i // 2, (left + here) * 0.5)


def _matmul() -> ct.view:
    sys.path.insert(0, str(ROOT / "examples"))
    from matmul import matmul

    a, b = (np.random.default_rng(0).random(shape).astype(np.float16) for shape in ((500, 600), (600, 380)))
    return ct.view(matmul, (8, 6), (a, b, np.zeros((500, 380), np.float32), 64, 64, 32))


def _smooth() -> ct.view:
    x = np.sin(np.arange(500, dtype=np.float32))
    return ct.view(smooth, (9,), (x, np.zeros_like(x)))


def _shot(name: str, view: Callable[[], Any], keys: str, **how: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, browser() as made:
        path = Path(folder) / "page.html"
        view().save(path)
        with opened(made, path, **how) as page:
            for key in keys.split():
                page.keyboard.press(key)
            page.screenshot(path=IMAGES / f"{name}.png")


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    _shot("matmul", _matmul, "ArrowDown " * 10 + "ArrowRight " * 31, width=1400, height=800)
    _shot("findings", _smooth, "ArrowUp End ArrowLeft", dark=True, width=1400, height=760)


if __name__ == "__main__":
    main()
