# SPDX-License-Identifier: Apache-2.0
"""The environment of the HTML templates: every value is escaped, and shown so that it cannot pass for another one."""

from __future__ import annotations

from functools import cache
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.rendering import shown
from ferrule.report.sections import number, plural, share

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
_SHORT = 72
_LONGEST = 1000
"""Characters of a name in a tooltip."""


@cache
def environment() -> jinja2.Environment:
    """Return the environment; a missing value or None at a place that writes it is a bug in Ferrule."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalized,
    )
    made.filters |= {
        "short": short,
        "tip": tip,
        "n": "{:,}".format,
        "real": "{:.4g}".format,
        "share": share,
        "percent": percent,
        "plural": plural,
        "number": number,
    }
    made.tests["finite"] = isfinite
    made.globals["zip"] = zip
    return made


def _finalized(value: object) -> object:
    """Return a value of a template as it is shown: without characters that are invisible or that reorder text."""
    if value is None:
        raise TypeError("a template writes None")
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return shown(str(value))
    return value


def short(text: str, length: int = _SHORT) -> str:
    """Return a name with the middle left out if it is very long."""
    text = shown(text)
    return text if len(text) <= length else f"{text[: length // 2]}…{text[-(length // 2 - 1) :]}"


def tip(text: str) -> str:
    """Return a name for a tooltip, without its end if it is extremely long."""
    text = shown(text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def percent(value: float) -> str:
    """Return a share, 0 to 1 and limited to that, as a length of CSS or SVG."""
    return f"{max(0.0, min(1.0, value)) * 100:.3f}".rstrip("0").rstrip(".") + "%"
