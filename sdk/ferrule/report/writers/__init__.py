# SPDX-License-Identifier: Apache-2.0
"""Writers of documents: each returns the text of one format and computes nothing that the documents lack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ferrule.report.base import Document
from ferrule.report.html import html_page

Writer = Callable[[Sequence[Document]], str]
"""Returns a file's text for one document, or for one of each model of a firmware; FerruleError if they lack it."""
FolderWriter = Callable[[Sequence[Document]], Mapping[str, str]]
"""Returns the texts of files by name."""


def _json(documents: Sequence[Document]) -> str:
    texts = [document.to_json() for document in documents]
    return (texts[0] if len(texts) == 1 else f"[{','.join(texts)}]") + "\n"


def _from(module: str, function: str) -> Callable[[Sequence[Document]], Any]:
    """Return a writer whose module is imported when it writes."""
    return lambda documents: getattr(import_module(f"{__name__}.{module}"), function)(documents)  # noqa: PLW0108


WRITERS: Mapping[str, Writer] = {
    "json": _json,
    "html": html_page,
    "csv": _from("csv_text", "csv_text"),
    "markdown": _from("markdown", "markdown_text"),
    "job-summary": _from("markdown", "summary_text"),
    "trace": _from("chrome_trace", "trace_text"),
    "junit": _from("junit", "junit_text"),
    "sarif": _from("sarif", "sarif_text"),
}
"""By the name of the format."""
FOLDERS: Mapping[str, FolderWriter] = {"node-data": _from("node_data", "node_data_files")}
