# SPDX-License-Identifier: Apache-2.0
"""Pages and fragments of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ferrule._version import VERSION
from ferrule.reading import read_text
from ferrule.report.html.charts import HEIGHT, Chart, tradeoff_chart
from ferrule.report.html.environment import TEMPLATES, environment
from ferrule.report.html.figures import Figure, hot_layers_figure, lanes_figure, memory_figure, timeline_figure
from ferrule.report.sections import Only, Part, group_colours

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""The Content-Security-Policy of a page: it loads nothing, and runs no script."""
_DRAW: Mapping[str, Callable[[Any], Figure | Chart]] = {
    "memory": memory_figure,
    "hot layers": hot_layers_figure,
    "lanes": lanes_figure,
    "timeline": timeline_figure,
    "tradeoff": tradeoff_chart,
}
"""By the kind of a picture: returns where its boxes stand."""


class Shown(Protocol):
    """Anything that has sections, such as a document."""

    def sections(self) -> Part:
        """Return what it shows."""


def html_page(documents: Shown | Sequence[Shown]) -> str:
    """Return a document, or several, as a web page: one file, without scripts, which loads nothing."""
    parts = _parts(documents)
    first = parts[0]
    title = f"{first.what} of {len(parts)} models" if len(parts) > 1 else f"{first.what} of {first.title}"
    return _render("page.html", parts, title=title, policy=POLICY, version=VERSION)


def html_fragment(documents: Shown | Sequence[Shown]) -> str:
    """Return a document, or several, as a part of a page, for notebooks: only its own style applies to it."""
    return _render("fragment.html", _parts(documents))


def _parts(documents: Shown | Sequence[Shown]) -> list[Part]:
    parts = [each.sections() for each in (documents if isinstance(documents, Sequence) else [documents])]
    if not parts:
        raise ValueError("no document to show")
    return parts


def _render(template: str, parts: Sequence[Part], **values: object) -> str:
    functions: dict[str, Callable[[Any], object]] = {
        "kind_of": lambda section: type(section).__name__,
        "inside": lambda part: part.shown(Only.PAGES),
        "drawn": lambda picture: _DRAW[picture.kind](picture.data),
        "cells_of": lambda table: table.shown(Only.PAGES, drawn=True),
        "colours_of": group_colours,
    }
    style = read_text(TEMPLATES / "style.css")
    return environment().get_template(template).render(parts=parts, style=style, height=HEIGHT, **functions, **values)
