"""tools/site_links.py: which links of a site lead nowhere."""

from __future__ import annotations

from tools.site_links import broken

INDEX = """<html><head><link rel="stylesheet" href="style.css?v=1"></head><body id="all">
<a href="page.html#part">a</a> <a href="page.html#gone">b</a> <a href="lost.html">c</a> <a href="#all">d</a>
<a href="#none">e</a> <a href="https://example.org/x#y">f</a> <img src="picture.png"> <a href="sub/">g</a>
<a href="a%20b.html#c%C3%A9">h</a> <a href="mailto:a@b.c">i</a></body></html>"""


def test_broken_links(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text(INDEX)
    (tmp_path / "page.html").write_text('<h2 id="part">part</h2><a name="old">old</a>')
    (tmp_path / "a b.html").write_text('<h2 id="cé"></h2>', encoding="utf-8")
    (tmp_path / "sub" / "index.html").write_text('<a href="../index.html#all">up</a><a href="../page.html#old">old</a>')
    (tmp_path / "style.css").write_text("")
    assert [(str(page), link) for page, link in broken(tmp_path)] == [
        ("index.html", "page.html#gone"), ("index.html", "lost.html"), ("index.html", "#none"),
        ("index.html", "picture.png")]
