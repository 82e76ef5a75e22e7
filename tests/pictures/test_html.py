"""The page: one file with everything in it. What it shows is tested in a browser, by test_page.py."""

from __future__ import annotations

import html
import json
import re

import pytest

from cutile.pictures.html import SCRIPTS, framed, page
from tests.pictures.test_data import of_product


def data_in(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def test_it_has_all_data_and_code():
    d = of_product()
    text = page(d)
    assert data_in(text) == d
    assert "<title>product, 2×1×1 blocks</title>" in text
    for needed in ("function drawArrays", "function drawRoofline", "function showStep", ":root.dark", 'id="findings"'):
        assert needed in text
    assert not re.search(r"@[A-Z]+@", text)


def test_it_needs_no_network():
    text = page(of_product())
    assert "default-src 'none'" in text
    assert not re.search(r'(src|href)="(?!#)', text) and "@import" not in text and "url(" not in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


@pytest.mark.parametrize("evil", ["</script><script>alert(1)</script>", "<!--", "a @DATA@ b", "\u2028 é"])
def test_text_of_the_user_stays_text(evil):
    d = of_product()
    d["kernel"] = d["sources"][0]["lines"][0] = evil
    text = page(d)
    assert data_in(text) == d and text.count("<script") == text.count("</script>") == 2 and "<!--" not in text
    assert f"<title>{html.escape(evil)}, 2" in text


def test_in_a_notebook_it_is_framed():
    text = framed(page(of_product()))
    assert text.startswith("<iframe srcdoc=") and "<script" not in text
    assert html.unescape(re.search(r'srcdoc="(.*?)" style', text, re.S)[1]) == page(of_product())


def test_numbers_that_json_lacks_are_refused():
    with pytest.raises(ValueError):
        page({**of_product(), "error": float("nan")})
    assert len(SCRIPTS) == len(set(SCRIPTS))
