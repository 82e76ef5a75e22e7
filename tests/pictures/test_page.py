"""Pages in a headless browser (nox -s pages): nothing fails, and what is chosen is what is shown."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import cutile as ct
from tests.pictures.browser import browser, opened
from tests.pictures.test_data import product, wrong
from tests.test_examples import EXAMPLES, LAUNCHING, NEEDS

pytestmark = pytest.mark.pages


@pytest.fixture(scope="module")
def chromium():
    with browser() as made:
        yield made


@pytest.fixture
def page_of(chromium, tmp_path):
    def make(kernel, grid, *args, **how):
        ct.view(kernel, grid, args).save(tmp_path / "page.html")
        return opened(chromium, tmp_path / "page.html", **how)

    return make


def arguments():
    return np.ones((8, 16), np.float16), np.ones((16, 4), np.float16), np.zeros((8, 4), np.float32)


def has_colour(page, number, name):
    """Whether a picture of an array has pixels of a colour, mixed with those below it."""
    return page.evaluate("""([number, name]) => {
        const c = document.querySelectorAll("#arrays canvas")[number];
        const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
        const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour(name).slice(i, i + 2), 16));
        for (let i = 0; i < d.length; i += 4) {
            const near = (x, y) => Math.abs(x - y) < 40;
            if (near(d[i], r) && near(d[i + 1], g) && near(d[i + 2], b)) return true;
        }
        return false;
    }""", [number, name])


def now(page):
    return page.inner_text("#now")


def test_steps_show_values_and_tiles(page_of):
    with page_of(product, (2,), *arguments()) as page:
        assert page.inner_text("h1") == "product" and "2 blocks" in page.inner_text("#summary")
        assert "acc float32[4,4]" in now(page)
        for _ in range(2):
            page.keyboard.press("ArrowRight")
        assert "load a[0:4, 0:8]" in now(page) and "load b[0:8, 0:4]" in now(page)
        assert page.inner_text("tr.now td.code").strip().startswith("acc = ct.mma")
        assert has_colour(page, 0, "read") and not has_colour(page, 2, "write")
        page.keyboard.press("End")
        assert "store c[0:4, 0:4]" in now(page) and has_colour(page, 2, "write")
        page.keyboard.press("Home")
        assert page.input_value("#slider") == "0"
        page.click("[data-step=last]")
        assert "store c" in now(page)


def test_blocks(page_of):
    with page_of(product, (2,), *arguments()) as page:
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        assert page.input_value("#block") == "1,0,0" and "store c[4:8, 0:4]" in now(page)
        page.fill("#block", "0")
        page.keyboard.press("Enter")
        assert "store c[0:4, 0:4]" in now(page)
        page.click("#grid canvas", position={"x": 27, "y": 5})
        assert page.input_value("#block") == "1,0,0"


def test_blocks_that_were_not_recorded(page_of):
    with page_of(product_wide, (3000,), np.zeros((3000, 2), np.float32)) as page:
        page.fill("#block", "1501")
        page.keyboard.press("Enter")
        assert "not recorded" in now(page) and "8 B" in page.inner_text("#block-note")
        assert has_colour(page, 0, "write") and not has_colour(page, 0, "read")
        assert "this block writes [1501, 0:2]" in page.inner_text("#arrays")


@ct.kernel
def product_wide(x):
    ct.store(x, (ct.bid(0), 0), ct.full((1, 2), 1.0, ct.float32))


@ct.kernel
def beside(x, out):
    columns = ct.arange(16, dtype=ct.int32) + 16 * ct.bid(0)

    def at(right):
        return ct.gather(x, columns + right)

    ct.store(out, ct.bid(0), at(0) + at(4))


def test_gathers_show_what_lies_outside_and_arrays_of_one_shape_have_one_scale(page_of):
    with page_of(beside, (2,), np.ones(24, np.float32), np.zeros(24, np.float32)) as page:
        page.keyboard.press("ArrowDown")
        assert "this block reads [16:24]" in page.inner_text("#arrays")
        assert "this block writes [16:24]" in page.inner_text("#arrays")
        rows = page.locator("#accesses tr").all_inner_texts()
        assert any("gather in line" in row and "at(4)" in row and "\t12\t" in row for row in rows)
        assert page.evaluate("shownExtents[0].right") == page.evaluate("shownExtents[1].right") == 36


def test_counts_and_themes(page_of):
    with page_of(product, (2,), *arguments()) as page:
        page.keyboard.press("r")
        assert "each element read 2 times" in page.inner_text("#arrays") and has_colour(page, 1, "high")
        page.keyboard.press("w")
        assert "each element written 1 time" in page.inner_text("#arrays")
        assert page.get_attribute("[data-mode=writes]", "aria-pressed") == "true"
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.keyboard.press("t")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        page.keyboard.press("?")
        assert page.is_visible("#help")
    with page_of(product, (2,), *arguments(), dark=True) as page:
        assert "dark" in page.get_attribute("html", "class")


def test_roofline(page_of):
    with page_of(product, (2,), *arguments()) as page:
        before = page.inner_text("#costs")
        assert page.locator("#roofline circle").count() == 2 and "matrix float16" in before
        page.select_option("#gpu", "3")
        assert page.inner_text("#costs") != before


def test_findings(page_of):
    with page_of(wrong, (3,), np.ones(8, np.float32), np.zeros(4, np.float32)) as page:
        items = page.locator("#finding-list li")
        texts = items.all_inner_texts()
        k = next(i for i, text in enumerate(texts) if "lies wholly outside" in text)
        items.nth(k).locator("button").click()
        assert page.input_value("#block") == "2,0,0" and "load x[8:12], 4 of them outside" in now(page)
        assert has_colour(page, 0, "bad") and page.locator("tr.wrong").count() == 1


def test_a_launch_without_blocks(page_of):
    with page_of(wrong, (0,), np.ones(8, np.float32), np.zeros(4, np.float32)) as page:
        assert "no block ran" in page.inner_text("#grid")


@pytest.mark.parametrize("width", [1500, 1000, 500])
def test_nothing_is_wider_than_the_window(page_of, width):
    with page_of(product, (2,), *arguments(), width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", LAUNCHING)
def test_examples(chromium, name, tmp_path, monkeypatch):
    """Every mode, at some steps of some blocks, of the first launch of each kernel. The time to the first picture is
    printed.
    """
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.syspath_prepend(str(EXAMPLES))
    launch, seen = ct.launch, set()

    def also_seen(stream, grid, kernel, args, /, **options):
        if kernel.__name__ not in seen:
            seen.add(kernel.__name__)
            path = tmp_path / f"{kernel.__name__}.html"
            ct.view(kernel, grid, args).save(path)
            with opened(chromium, path) as page:
                for key in ("ArrowDown", "ArrowRight", "ArrowRight", "r", "w", "b", "t", "End", "ArrowUp"):
                    page.keyboard.press(key)
                painted = page.evaluate("performance.getEntriesByType('paint')[0].startTime")
                print(f"{kernel.__name__}: first picture after {painted:.0f} ms, {path.stat().st_size / 1e6:.2f} MB")
        return launch(stream, grid, kernel, args, **options)

    monkeypatch.setattr(ct, "launch", also_seen)
    importlib.import_module(name).main()
    assert seen
