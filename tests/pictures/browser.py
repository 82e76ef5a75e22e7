"""Pages in a headless browser, by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INSTALLED = ("chromium-headless-shell", "chromium", "google-chrome", "chrome")


@contextmanager
def browser() -> Iterator[Any]:
    """A browser: one of INSTALLED that is there, or Playwright's own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        found = next(filter(None, map(shutil.which, INSTALLED)), None)
        made = p.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@contextmanager
def opened(browser: Any, path: Path, *, dark: bool = False, width: int = 1500, height: int = 950) -> Iterator[Any]:
    """A page from a file. An error in it, or a request for anything but the file, is an AssertionError in the end."""
    context = browser.new_context(viewport={"width": width, "height": height},
                                  color_scheme="dark" if dark else "light")
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: wrong.append(r.url) if r.url != path.as_uri() else None)
    page.goto(path.as_uri())
    yield page
    context.close()
    assert not wrong, wrong
