# SPDX-License-Identifier: Apache-2.0
"""Documents as web pages: one file without scripts that needs no network, and fragments for notebooks.

The texts of a document come from models and data. The templates' environment escapes every one of them, and the
Content-Security-Policy of a page lets it load nothing and run nothing.
"""

from ferrule.report.html.pages import html_fragment, html_page

__all__ = ["html_fragment", "html_page"]
