# SPDX-License-Identifier: Apache-2.0
"""`ferrule sweep`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli.console import echo
from ferrule.cli.main import EXIT_NOTHING_COMPARED, exit_of
from ferrule.cli.options import config_option, quiet_option
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.parameters import FILE, POSITIVE, collected, flag, option, several
from ferrule.cli.progress import progress
from ferrule.errors import FerruleError
from ferrule.interface import spell_for

if TYPE_CHECKING:
    from ferrule.evaluation.sweep import Plan, ResultsFile, Settings


def _settings(**typed: Any) -> Settings:  # noqa: ANN401 click's types
    from ferrule.evaluation.sweep import Settings

    return Settings(**typed)


@click.command("sweep")
@click.argument("file", type=FILE)
@option(
    "--results",
    "Where each run adds a row as it ends, and from which the sweep goes on after a stop.  [default: the name of "
    "FILE with the suffix .jsonl, beside it]",
    "results_path",
    kind=FILE,
    metavar="FILE.JSONL",
)
@option(
    "--workers",
    "Worker processes on this machine; with the address of a scheduler, the workers to wait for.  [default: one "
    "for each processor; with an address 1]",
    "count",
    kind=POSITIVE,
    metavar="N",
)
@option(
    "--scheduler",
    "Run on the workers of this dask scheduler, such as tcp://10.0.0.1:8786; or local, for a scheduler and "
    "workers on this machine.",
    metavar="ADDRESS",
)
@several(
    "--resource",
    "NAME=AMOUNT",
    "What this machine has of a resource that runs need, such as BOARD=2.  [default: 1 of each]",
    "resources",
)
@collected(
    "settings",
    _settings,
    option(
        "--attempts", "How often a run is begun, at most, if its worker is lost.", kind=POSITIVE, default=3, metavar="N"
    ),
    flag("--retry-failed", "Repeat the runs that have failed before."),
    flag("--fail-fast", "End at the first run that fails or differs."),
)
@flag("--dry-run", "Check the file and list its runs, but run nothing.")
@option("--parquet", "Write the rows as a Parquet table.", kind=FILE, metavar="FILE")
@outputs_options("sweep")
@config_option
@quiet_option
def command(
    file: Path,
    results_path: Path | None,
    count: int | None,
    scheduler: str | None,
    resources: tuple[str, ...],
    settings: Settings,
    dry_run: bool,
    parquet: Path | None,
    results: Outputs,
    config: Path | None,
    quiet: bool,
) -> int:
    """Carry out all runs of FILE, a sweep.toml (docs/sweeps.md), each on a worker process.

    A run compiles a model, runs it and compares its outputs with the numpy reference. Its row is kept as soon as it
    ends, so that the same command goes on where a sweep was stopped. A run whose worker is lost is done again.
    Exit code: 0 if all outputs are equal (float32 of other code: within bound), 1 if a run differs, has failed or
    misses the sweep's deadline, 2 for an error, 3 if there is no run, or one has compared nothing, 4 if one keeps the
    deadline by a time whose error was not measured.
    """
    spell_for(command_line=False)  # whose names the file has
    from ferrule.evaluation.sweep import ResultsFile, carry_out_plan, read_plan
    from ferrule.evaluation.sweep.cluster import workers_for

    results.check()
    if parquet is not None:
        from ferrule.cli.arrays import require_writable
        from ferrule.evaluation.sweep.table import require_parquet

        require_parquet()
        require_writable("--parquet", parquet)
    capacity = _capacity(resources, scheduler)
    with results.failures("sweep", [file]):
        plan = read_plan(file, config)
        kept = results_path or file.with_suffix(".jsonl")
        if dry_run:
            return 0 if _list(plan) else EXIT_NOTHING_COMPARED
        with ResultsFile(kept) as rows:
            if rows.torn:
                click.echo(f"warning: {kept}: the last line was torn and is removed; its run is done again", err=True)
            with progress(quiet=quiet) as say, _told(rows), workers_for(scheduler, count, capacity) as workers:
                document = carry_out_plan(plan, workers, rows, settings, say)
            others = len(rows.statuses) - len(document.rows)
            if others > 0:
                left_out = "rows of runs that the sweep does not have, or of other versions; they are left out"
                click.echo(f"warning: {kept} has {others:,} {left_out}", err=True)
    if parquet is not None:
        from ferrule.evaluation.sweep import write_parquet

        write_parquet(parquet, document.rows, name=document.name)
    results.write([document], quiet=quiet)
    if not quiet and not results.takes_stdout:
        echo(f"rows in {kept}")
    bad = [row for row in document.rows if not row.succeeded]
    verdicts = [
        "different" if row.failed or row.verdict == "different" else row.judgement if row.agrees else "nothing_compared"
        for row in bad
    ]
    return exit_of(verdicts if document.rows else ["nothing_compared"])


def _capacity(options: Sequence[str], scheduler: str | None) -> dict[str, float]:
    from ferrule.evaluation.sweep.cluster import LOCAL
    from ferrule.running.configuration import assignments

    if options and scheduler not in {None, LOCAL}:
        raise FerruleError(
            "--resource is for workers that this command starts",
            hint="start the workers of a scheduler with their resources: dask worker --resources NAME=AMOUNT",
        )
    found: dict[str, float] = {}
    expected = "NAME=AMOUNT, such as BOARD=1"
    for name, amount in assignments("--resource", options, expected, "the amount of").items():
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = 0
        if not name or not 0 < found[name] < float("inf"):
            raise FerruleError(f"--resource {name}={amount}: expected {expected}")
    return found


@contextmanager
def _told(rows: ResultsFile) -> Iterator[None]:
    """Tell where the rows are if the sweep is interrupted."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception):
            click.echo(f"{len(rows.statuses):,} rows are in {rows.path}; the same command goes on after them", err=True)
        raise


def _list(plan: Plan) -> int:
    """Print the runs of a plan and return their number."""
    from ferrule.evaluation.sweep.run import versions

    found = versions(plan.toolchains, plan.engines)
    number = 0
    for number, run in enumerate(plan.runs(found), start=1):
        options = [f"{name}={value}" for name, value in run.options.items()]
        needs = [f"{name}={amount:g}" for name, amount in run.resources]
        parts = [run.model, run.board, run.toolchain, run.engine, ",".join(run.backends), *options, *needs]
        echo(f"{number} {shlex.join(parts)}")
    echo(f"{number:,} runs")
    return number
