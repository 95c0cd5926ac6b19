# SPDX-License-Identifier: Apache-2.0
"""Texts that break files into which they are written without quoting."""

from __future__ import annotations

HOSTILE = [
    "$(shell touch P)",
    "`touch P`",
    "$(touch P)",
    "${HOME}",
    "a'b\"c",
    "*/ int x; /*",
    "/*",
    "a\\",
    "??/",
    "#",
    "%s",
    "a;b",
    "a b",
    "<b>&amp;*x*_y_[z](u)",
    "|",
    "é∀😀",
    "@VAR@",
    "[[x]]",
    "-x",
    "",
    "x" * 300,
    "!x ~y~",
]
"""Values of one printable line; the others are refused where they come in, and here too."""
UNSHOWN = ["a\nb", "\x1b[31m", "\u202eabc", "\u2028", "\0"]
"""Texts with characters that no file of a user may contain in its values."""
