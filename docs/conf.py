"""Settings of Sphinx for the site: `nox -s docs` builds it."""

from cutile._version import __version__

project = "cutile"
author = "The cutile authors"
release = version = __version__

extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["conformance/*/**"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_render_markdown_format = "myst"
numpydoc_show_class_members = False

html_theme = "furo"
html_title = f"cutile {release}"
html_theme_options = {"source_repository": "", "top_of_page_buttons": []}
