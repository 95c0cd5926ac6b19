# SPDX-License-Identifier: Apache-2.0
"""`ferrule evaluate`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli import limits
from ferrule.cli.main import EXIT_DIFFERENT, exit_of
from ferrule.cli.options import (
    JobOptions,
    check_toolchain,
    engine_name,
    job_options,
    model_argument,
    platform_option,
    quiet_option,
    run_options,
)
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.parameters import FILE, NATURAL, POSITIVE, collected, option, several
from ferrule.cli.progress import progress
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.errors import unknown_name

if TYPE_CHECKING:
    from ferrule.report.evaluation_document import EvaluationDocument, MetricPart
    from ferrule.running import RunRequest


@click.command("evaluate")
@model_argument
@collected(
    "asked",
    dict,
    several(
        "--data",
        "[NAME=]D",
        "The samples: .npy, .npz, .csv, a folder of images or .wav files with a subfolder per class, or "
        "FILE.py:function, which is run (docs/data.md). NAME=FILE.npy for each input of a model with several.",
        required=True,
    ),
    option(
        "--labels", "The labels: a .npy, .csv or .txt file, a column of the .csv, an array of the .npz.", metavar="L"
    ),
    several(
        "--metric",
        "METRIC",
        "accuracy, top5, auc, mae, mse, confusion, or FILE.py:function, which is run; repeat it for several. "
        "[default: accuracy for classes, mae and mse for real values]",
        "metrics",
    ),
    option(
        "--proof",
        "With --board: how many samples run on it, to be compared with the host and with the numpy reference.",
        kind=POSITIVE,
        default=20,
    ),
    option(
        "--compared",
        "With --float: by how many samples the losses of layers are measured.",
        kind=NATURAL,
        default=16,
    ),
    option(
        "--seed",
        "Draws these samples, those of --limit, and the resamples of bootstrap intervals.",
        kind=NATURAL,
        default=0,
    ),
    several(
        limits.OPTION,
        f"N|{limits.METAVAR}",
        f"N: evaluate only so many samples, drawn with --seed. {limits.METAVAR}: {limits.HELP}",
        callback=limits.split,
    ),
    option(
        "--sequence",
        "The sequences that samples of a model with state belong to: a .npy file of numbers, a column of the "
        '.csv, or "files" for recordings. By default, each sample begins with the initial state. With --score '
        "reconstruction: the samples whose scores are averaged.",
        metavar="S",
    ),
    option(
        "--score",
        "What of an answer is scored: the output's values, or, for anomaly detection by an autoencoder, the mean "
        "squared difference of the output from the input; label 0 is normal then.",
        kind=("output", "reconstruction"),
        default="output",
    ),
    option("--output", "The model's output that is scored.  [default: the first]", metavar="NAME"),
    option(
        "--confidence",
        "The level of confidence intervals.",
        kind=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
    ),
    option("--worst", "How many of the worst samples to list.", kind=NATURAL, default=10),
    option(
        "--on-board",
        "Which samples run on the board: those of --proof, or all, of whose outputs the metrics are then.",
        kind=("proof", "all"),
        default="proof",
        callback=lambda _context, _parameter, value: value == "all",
    ),
    option(
        "--jobs",
        "With --on-board all: the number of processes, each with a board of its own.",
        kind=POSITIVE,
        default=1,
    ),
)
@option(
    "--float",
    "Evaluate this float32 model on the same samples, too, and compare.",
    "float_model",
    kind=FILE,
    metavar="MODEL",
)
@several(
    "--fail-below",
    "METRIC=NUMBER",
    "Exit with 1 if a metric is below this, such as accuracy=0.9; repeat it for several.",
)
@several("--fail-above", "METRIC=NUMBER", "Exit with 1 if a metric is above this, such as mae=2.")
@reading_options()
@job_options()
@platform_option("The platform of the firmware.")
@run_options()
@outputs_options("evaluation")
@quiet_option
def command(
    model: Path,
    asked: dict[str, Any],
    float_model: Path | None,
    fail_below: tuple[str, ...],
    fail_above: tuple[str, ...],
    reading: ReadingOptions,
    options: JobOptions,
    platform: str,
    request: RunRequest,
    results: Outputs,
    quiet: bool,
) -> int:
    """Compute the metrics of MODEL (.tflite, .onnx or .pt2) on samples with labels, with confidence intervals.

    All samples run on this machine, by the fastest exact way. With --board, or a board in ferrule.toml, some of them,
    drawn with --seed, also run on the board, and their outputs are compared bit for bit. Exit code: 0, 1 if outputs
    differ, a metric fails a limit or a --deadline is missed, 2 for an error, 3 if nothing was compared: without labels,
    --float or a board, or where all outputs are NaN, 4 if a --deadline is kept by a time whose error was not measured.
    """
    from ferrule.evaluation.evaluate import evaluated
    from ferrule.evaluation.metrics import METRICS, parse_limit
    from ferrule.evaluation.request import EvaluationRequest
    from ferrule.progress import Step
    from ferrule.running.configuration import read_configuration

    results.check()
    lower = dict(parse_limit("--fail-below", text) for text in fail_below)
    upper = dict(parse_limit("--fail-above", text) for text in fail_above)
    _check_limits((*lower, *upper), [metric.rpartition(":")[2] for metric in asked["metrics"] or METRICS])
    configuration = read_configuration(options.config)
    board = options.board or configuration.board
    results.check_board(named=bool(board))
    check_toolchain(options.toolchain, platform)
    engine = engine_name(request.engine, configuration, board)
    with (
        results.failures("evaluate", [model], board=Path(board or "").name, engine=engine if board else ""),
        progress(quiet=quiet or results.takes_stdout) as say,
    ):
        say(Step(phase=f"importing {model}"))
        (network,) = reading.load([model])
        wanted = EvaluationRequest(
            settings=configuration.data,
            float_model=None if float_model is None else reading.load([float_model])[0],
            job=options.job(configuration, platform=platform) if board else None,
            run=replace(request, engine=engine, progress=say),
            **asked,
        )
        done = evaluated(network, wanted)
        document = _with_limits(done.document, lower, upper)
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    results.write([document], models=[model], quiet=quiet)
    failures = [part.broken_limit for part in document.metrics if part.failed]
    for failure in failures:
        click.echo(f"failed: {failure}", err=True)
    return EXIT_DIFFERENT if failures else exit_of(_verdicts(document))


def _verdicts(document: EvaluationDocument) -> Iterator[str]:
    """Yield the verdict of the proof, and "nothing_compared" if nothing was compared with the outputs."""
    if document.proof is not None:
        yield document.proof.verdict
        yield from document.proof.report.duration.judgements
    if not document.evidence:
        yield "nothing_compared"


def _check_limits(limited: Iterable[str], known: Sequence[str]) -> None:
    """Raise FerruleError for a limit of a metric that an evaluation with these metrics lacks."""
    for name in limited:
        if name not in known:
            raise unknown_name("metric", name, known, where="in this evaluation")


def _with_limits(
    document: EvaluationDocument, lower: Mapping[str, float], upper: Mapping[str, float]
) -> EvaluationDocument:
    """Return the document with the limits of its metrics; FerruleError for one of a metric that it lacks."""
    _check_limits((*lower, *upper), [part.name for part in document.metrics])
    parts = (_with_limit(part, lower.get(part.name), upper.get(part.name)) for part in document.metrics)
    return replace(document, metrics=tuple(parts))


def _with_limit(part: MetricPart, at_least: float | None, at_most: float | None) -> MetricPart:
    if at_least is None and at_most is None:
        return part
    failed = part.value is None or (
        (at_least is not None and part.value < at_least) or (at_most is not None and part.value > at_most)
    )
    return replace(part, at_least=at_least, at_most=at_most, failed=failed)
