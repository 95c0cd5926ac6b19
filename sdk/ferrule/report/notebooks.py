# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of documents: a page, and a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from pandas import DataFrame

    from ferrule.report.reading import Document


class Notebook:
    """A document that notebooks show as a page."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return shown_in_notebook(cast("Document", self))

    def to_dataframe(self) -> DataFrame:
        """Return the rows that CSV has, as a pandas data frame; texts are as they are, not quoted for a spreadsheet.

        Raises:
            FerruleError: the document has no rows.
            MissingToolError: pandas is not installed.
        """
        return data_frame(cast("Document", self))


def shown_in_notebook(document: Document) -> str:
    """Return a document as a part of a page."""
    from ferrule.report.html import html_fragment

    return html_fragment(document)


def data_frame(document: Document) -> DataFrame:
    """Return a document's rows; see `Notebook.to_dataframe`."""
    from ferrule.report.rows import table

    columns, rows = table([document])
    pandas = _pandas()
    return pandas.DataFrame(rows, columns=columns)


def _pandas() -> Any:  # noqa: ANN401 the module
    from ferrule.errors import MissingToolError

    try:
        import pandas
    except ImportError as error:
        raise MissingToolError(
            "data frames need the Python package pandas", hint="pip install 'ferrule[pandas]'"
        ) from error
    return pandas
