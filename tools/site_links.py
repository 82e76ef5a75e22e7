"""python -m tools.site_links FOLDER: links of a built site that lead nowhere, each with the page that has it.

Links to other sites are not followed. The exit status is 1 if there is a broken one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class _Page(HTMLParser):
    """The links of a page, and the ids in it that links may lead to."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.update(v for k, v in attrs if v and (k == "id" or k == "name" and tag == "a"))
        self.links += filter(None, (given.get("href") if tag in ("a", "link") else None, given.get("src")))


def broken(site: Path) -> Iterator[tuple[Path, str]]:
    """Each page, from the site on, with a link of it to a file or an id that is not there."""
    pages = {p: _Page(p.read_text(encoding="utf-8")) for p in sorted(site.resolve().rglob("*.html"))}
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            file, fragment = urldefrag(link)
            file = unquote(file.partition("?")[0])
            to = path if not file else (path.parent / file).resolve()
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file() or to in pages and unquote(fragment) not in pages[to].ids:
                yield path.relative_to(site.resolve()), link


def main() -> int:
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    found = list(broken(Path(sys.argv[1])))
    for page, link in found:
        print(f"{page}: {link} leads nowhere")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
