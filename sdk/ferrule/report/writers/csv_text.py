# SPDX-License-Identifier: Apache-2.0
"""Documents as CSV, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from ferrule.rendering import spreadsheet_cell
from ferrule.report.base import Document, Value, table


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


def _cell(value: Value) -> str | int | float:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return spreadsheet_cell(value)
        case _:
            return value
