# SPDX-License-Identifier: Apache-2.0
"""`ferrule report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import console, echo
from ferrule.cli.outputs import ALL, Outputs, outputs_options

if TYPE_CHECKING:
    from ferrule.report.reading import Document


@click.command("report", short_help="Write a saved document in another format.")
@click.argument("document", type=click.Path(dir_okay=False, path_type=Path))
@outputs_options(ALL)
def command(document: Path, results: Outputs) -> None:
    """Write DOCUMENT, which a command wrote with --json, in other formats; without options, print it.

    The documents are those of `ferrule run`, `inspect`, `evaluate`, `sweep` and `compare`.
    """
    from ferrule.report.reading import read_documents

    results.check()
    documents = read_documents(document)
    results.write(documents, made=False)
    if not results:
        for each in documents:
            _print(each)


def _print(document: Document) -> None:
    """Print a document as the command that made it does, or else as Markdown."""
    from ferrule.report.comparison_console import print_comparison
    from ferrule.report.comparison_document import Comparison
    from ferrule.report.console import print_report
    from ferrule.report.document import ReportDocument
    from ferrule.report.inspection import Inspection
    from ferrule.report.inspection_console import print_inspection
    from ferrule.report.writers import WRITERS

    match document:
        case ReportDocument():
            print_report(document, console())
        case Inspection():
            print_inspection(document, console())
        case Comparison():
            print_comparison(document, console())
        case _:
            echo(WRITERS["markdown"]([document]), nl=False)
