# SPDX-License-Identifier: Apache-2.0
"""`ferrule compare`."""

from __future__ import annotations

from pathlib import Path

import click

from ferrule.cli.main import exit_of
from ferrule.cli.options import quiet_option
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.parameters import FILE, flag, several
from ferrule.errors import FerruleError


@click.command("compare")
@click.argument("old", type=FILE)
@click.argument("new", type=FILE)
@several(
    "--fail-on",
    "LIMIT",
    "How much worse a value may be: 1% for all totals, metrics and runs, or by counter, such as "
    "instructions=1%,flash=0,layer=5%. A number without % is in the counter's unit.",
    "limits",
)
@flag("--other-model", "Compare documents of different models, too.")
@outputs_options("comparison")
@quiet_option
def command(old: Path, new: Path, limits: tuple[str, ...], other_model: bool, results: Outputs, quiet: bool) -> int:
    """Compare two documents that `ferrule run`, `inspect`, `evaluate`, `quantize` or `sweep` wrote with --json.

    Of a sweep, the file of its rows (.jsonl) will do, too.

    Instructions or cycles are compared per inference and per layer, matched by name; so are flash, RAM, stack, metrics,
    verdicts, and the runs of sweeps. Conditions that differ, such as another compiler or board, are stated.

    Exit code: 0 if nothing is worse than --fail-on allows, 1 if something is, 2 for an error, 3 if something was not
    compared: the documents have no proof, metric or run in common, the new one lacks a verdict, proof or metric, or a
    limit has nothing to judge. A verdict that has become "different", and a run that fails now, is never allowed.
    """
    from ferrule.report.comparison import compare_documents
    from ferrule.report.limits import parse_limits
    from ferrule.report.reading import read_comparable

    results.check()
    allowed = parse_limits(limits)
    before, after = read_comparable(old, _warn), read_comparable(new, _warn)
    if len(before) != len(after):
        raise FerruleError(f"{old} has {len(before)} documents, {new} has {len(after)}: expected as many")
    comparisons = [
        compare_documents(*pair, allowed, other_model=other_model)  # of several models, in their order
        for pair in zip(before, after, strict=True)
    ]
    results.write(comparisons, quiet=quiet)
    return exit_of("different" if each.worse else "nothing_compared" if each.uncompared else "" for each in comparisons)


def _warn(sentence: str) -> None:
    click.echo(f"warning: {sentence}", err=True)
