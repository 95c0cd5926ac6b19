# SPDX-License-Identifier: Apache-2.0
"""Documents as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ferrule.rendering import spreadsheet_cell
from ferrule.report.rows import Cell, table

if TYPE_CHECKING:
    from ferrule.report.reading import Document


def csv_text(documents: Sequence[Document]) -> str:
    """Return a table with a line of headings; an empty cell is a value that is not known or does not apply.

    Raises:
        FerruleError: a document has no rows.
    """
    columns, rows = table(documents)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([spreadsheet_cell(column) for column in columns])
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return stream.getvalue()


def _cell(value: Cell) -> str | int | float:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return spreadsheet_cell(value)
        case _:
            return value
