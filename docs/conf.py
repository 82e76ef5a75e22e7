"""Settings of Sphinx for the site: `nox -s docs` builds it."""

import re
from pathlib import Path

from pygments.lexers.special import TextLexer

from cutile._version import __version__

project = "cutile"
author = "The cutile authors"
release = version = __version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build", "conformance/*/**", "jupyter_execute"]  # what an earlier build has written is no page

myst_enable_extensions = ["colon_fence"]  # no math: MathJax would come from another server
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_render_markdown_format = "myst"
numpydoc_show_class_members = False
copybutton_prompt_text = r">>> |\.\.\. |\$ |\(Pdb\) "
copybutton_prompt_is_regexp = True

html_show_copyright = False
html_theme = "furo"
html_title = f"cutile {release}"

_LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[\w./-]+)(#[\w-]+)?\)")


def _name_files_outside(app, name: str, source: list[str]) -> None:
    """Pages are also read in the repository, where links lead to files outside docs. The site names such files."""
    docs = Path(app.srcdir)
    page = Path(app.env.doc2path(name))

    def replace(link: re.Match) -> str:
        file = (page.parent / link[2]).resolve()
        if file.is_relative_to(docs):
            return link[0]
        assert file.exists(), f"{page}: a link to {link[2]}, which does not exist"
        return f"{link[1]} (`{file.relative_to(docs.parent)}`)" if link[1] != link[2] else f"`{link[1]}`"

    source[0] = _LINK.sub(replace, source[0])


def setup(app) -> None:
    """Called by Sphinx."""
    app.add_lexer("pdb", TextLexer)
    app.connect("source-read", _name_files_outside)
