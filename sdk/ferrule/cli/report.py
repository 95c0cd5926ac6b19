# SPDX-License-Identifier: Apache-2.0
"""`ferrule report`."""

from __future__ import annotations

from pathlib import Path

import click

from ferrule.cli.outputs import ALL, Outputs, outputs_options
from ferrule.cli.parameters import FILE


@click.command("report")
@click.argument("document", type=FILE)
@outputs_options(ALL)
def command(document: Path, results: Outputs) -> None:
    """Write DOCUMENT, which a command wrote with --json, in other formats; without options, print it.

    The documents are those of `ferrule run`, `inspect`, `evaluate`, `sweep` and `compare`.
    """
    from ferrule.report.reading import read_documents

    results.check()
    results.write(read_documents(document), made=False, quiet=bool(results))
