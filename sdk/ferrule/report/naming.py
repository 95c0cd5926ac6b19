# SPDX-License-Identifier: Apache-2.0
"""Names of files in documents, which others may read: without the folders of the machine that made them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ferrule.report.base import Document
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.quantization_document import QuantizationDocument
from ferrule.report.run_document import ReportDocument
from ferrule.report.search_document import SearchDocument


def shared_name(path: Path) -> str:
    """Return a file's path relative to the working folder, with "/"; only its name if it is elsewhere."""
    whole, here = path.absolute(), Path.cwd()
    return whole.relative_to(here).as_posix() if whole.is_relative_to(here) and ".." not in whole.parts else path.name


def of_file(document: Document, file: str) -> Document:
    """Return a document that names its model's file; those without a place for it are returned as they are."""
    match document:
        case ReportDocument() | EvaluationDocument() | QuantizationDocument() | SearchDocument():
            return replace(document, model=replace(document.model, file=file))
        case _:
            return document
