# SPDX-License-Identifier: Apache-2.0
"""The site of the documentation: `make docs` builds it into build/docs.

The source folder is the repository's root, so that a link between two pages is the same on the site and in the
repository.
"""

from ferrule import __version__

project = "Ferrule"
author = "The Ferrule authors"
copyright = "The Ferrule authors, Apache-2.0"  # noqa: A001 Sphinx requires this name
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
root_doc = "docs/index"
include_patterns = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "docs/**.md",
    "examples/README.md",
    "examples/*/README.md",
    "tests/support/README.md",
]
exclude_patterns = [".*", "build", "sdk", "src_c"]
myst_heading_anchors = 4

suppress_warnings = ["ref.python"]  # a type hint may name what two public modules export, such as FerruleError

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
default_role = "code"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"Ferrule {version}"
html_show_sphinx = False
html_additional_pages = {"index": "redirect.html"}
templates_path = ["site"]
