# SPDX-License-Identifier: Apache-2.0
"""Writes values into files of many languages; every value is quoted for the place where it stands."""

from ferrule.rendering.c_text import COLUMNS, c_call, c_comment, fitted, string_literal
from ferrule.rendering.quoting import (
    Verbatim,
    check_text,
    check_values,
    is_plain,
    markdown,
    one_line,
    shown,
    spreadsheet_cell,
    yaml_scalar,
)
from ferrule.rendering.templates import Templates

__all__ = [
    "COLUMNS",
    "Templates",
    "Verbatim",
    "c_call",
    "c_comment",
    "check_text",
    "check_values",
    "fitted",
    "is_plain",
    "markdown",
    "one_line",
    "shown",
    "spreadsheet_cell",
    "string_literal",
    "yaml_scalar",
]
