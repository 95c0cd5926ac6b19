# SPDX-License-Identifier: Apache-2.0
"""`ferrule quantize`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ferrule.cli import limits
from ferrule.cli.console import echo
from ferrule.cli.main import EXIT_DIFFERENT, exit_of
from ferrule.cli.options import JobOptions, job_options, models_argument, quiet_option
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.parameters import FILE, NATURAL, PATH, POSITIVE, collected, option, several
from ferrule.cli.progress import progress
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.quantization import FoundModel, QuantizedModel


@click.command("quantize")
@models_argument
@collected(
    "asked",
    dict,
    several(
        "--data",
        "[NAME=]D",
        "The samples, as for ferrule evaluate: .npy, .npz, .csv, a folder of images or .wav files, or "
        "FILE.py:function, which is run (docs/data.md). NAME=FILE.npy for each input of a model with several. Several "
        "models have one each, in their order, or one for all.",
        required=True,
    ),
    option("--scheme", "What activations become; weights become int8.", kind=("int8", "int16"), default="int8"),
    option(
        "--io",
        "The type of the model's inputs and outputs: that of the scheme, or float.  [default: the scheme]",
        kind=("int8", "int16", "float"),
    ),
    option(
        "--ranges",
        "How the range of a tensor follows from its values in all samples: minmax, mse (the least squared error), "
        "percentile or percentile=99.9; auto tries them for int8, and takes the one that loses least at the outputs "
        "(for int16 and with --budget, it is minmax).",
        default="auto",
        metavar="RULE",
    ),
    option(
        "--equalise",
        "Multiply channels between two layers by powers of two, so that their sizes differ less: auto does for int8 if "
        "that loses less at the outputs (with --budget, it does not).",
        kind=("auto", "on", "off"),
        default="auto",
    ),
    several(
        "--keep",
        "NAME[=PRECISION]",
        "Keep a layer, or all of a kind such as SOFTMAX, or those that a pattern with * fits, in float; =int16 or "
        "=int8 gives them that precision. Of several for a layer, the last one counts.",
    ),
    several(
        limits.OPTION,
        f"N|{limits.METAVAR}",
        f"N: use only so many samples, drawn with --seed. {limits.METAVAR}: {limits.HELP}",
        callback=limits.split,
    ),
    option("--seed", "Draws the samples of --limit.", kind=NATURAL, default=0),
    option("--compared", "By how many samples the losses of layers are measured.", kind=NATURAL, default=16),
    option(
        "--labels",
        "The labels of the samples, as for ferrule evaluate: the report then has the metrics of both models.",
        metavar="L",
    ),
)
@collected(
    "searched",
    dict,
    option(
        "--budget",
        "Search the best precision of each layer within these limits of the board, and quantise the model so.",
        metavar="flash=256K,ram=64K,ms=50",
    ),
    option(
        "--metric",
        "With --budget: accuracy, top5, auc, mae or mse.  [default: accuracy with labels, the noise of the outputs "
        "without]",
        metavar="METRIC",
    ),
    option("--evaluations", "With --budget: how many settings are tried.", kind=POSITIVE, default=60),
    option("--jobs", "With --budget: the number of processes that try settings.", kind=POSITIVE, default=1),
    option(
        "--scheduler",
        "With --budget: try settings on the workers of this dask scheduler, as ferrule sweep does.",
        metavar="ADDRESS",
    ),
    option(
        "--results",
        "With --budget: the file of trials, a line of JSON each; the same command goes on from it.",
        kind=PATH,
    ),
)
@option(
    "--out",
    "The file of the quantised model, a .tflite.  [default: MODEL_int8.tflite or MODEL_int16.tflite, here; none for "
    "several models]",
    kind=FILE,
)
@reading_options(rounding=False)
@job_options()
@outputs_options("quantization")
@quiet_option
def command(
    models: tuple[Path, ...],
    asked: dict[str, Any],
    searched: dict[str, Any],
    out: Path | None,
    reading: ReadingOptions,
    options: JobOptions,
    results: Outputs,
    quiet: bool,
) -> int:
    """Turn the float32 MODEL (.tflite, .onnx or .pt2) into one of integers, calibrated with your samples.

    Ferrule observes the values of all tensors on the samples and chooses their ranges; the package ai-edge-quantizer
    writes the integers (pip install 'ferrule[quantize]'). The report says what each layer loses against the float
    model, and which layers stay in float32 and why. Settings of the data come from [data] of ferrule.toml.

    With --budget, each block of layers is tried in int8, int16 and float; the board of --board and the options of its
    firmware count. Several models, such as those for several resolutions, are searched together. Half of the samples
    choose, and the report is on the others. Exit code: 0, 1 if no setting keeps the budget or the board's outputs
    differ, 2 for an error.
    """
    from ferrule.cli.arrays import require_writable, save
    from ferrule.progress import Step
    from ferrule.quantization import BoardBudget, FoundModel, SearchRequest, quantize, search_models
    from ferrule.quantization.precision import Precision
    from ferrule.running.configuration import read_configuration

    budget = searched.pop("budget")
    if len(models) > 1:
        _check_several(models, budget, out)
    file = out or Path(f"{models[0].stem}_{asked['scheme']}.tflite")
    if file.suffix.lower() != ".tflite":
        raise FerruleError(f"--out {file} has the suffix '{file.suffix}', expected '.tflite'")
    require_writable("--out", file)
    results.check()
    configuration = read_configuration(options.config)
    if budget is None:
        _refuse_others(searched, options)
    elif asked["keep"]:
        raise FerruleError("--keep and --budget exclude each other: a search gives each layer its precision")
    elif asked["equalise"] == "on":
        raise FerruleError("--equalise on and --budget exclude each other: a search leaves channels as they are")
    with (
        results.failures("quantize", models),
        progress(quiet=quiet or results.takes_stdout) as say,
    ):
        say(Step(phase=f"importing {', '.join(map(str, models))}"))
        networks = reading.load(models)
        done: QuantizedModel | FoundModel
        if budget is None:
            done = quantize(networks[0], settings=configuration.data, progress=say, **asked)
        else:
            request = SearchRequest(
                budget=BoardBudget.parse(budget),
                job=options.job(configuration),
                io=Precision(asked["io"] or Precision.INT8),
                ranges=asked["ranges"],
                seed=asked["seed"],
                limit=asked["limit"],
                labels=asked["labels"],
                progress=say,
                **searched,
            )
            data_of = _divided(asked["data"], len(networks))
            done = search_models(list(zip(networks, data_of, strict=True)), request, configuration.data)
        data = None if isinstance(done, FoundModel) and done.network is None else done.tflite
    if data is not None:
        save(file, data)
    results.write([done.document], models=models[:1], quiet=quiet)
    if data is not None and not (quiet or results.takes_stdout):
        echo(f"{file}: {len(data):,} B")
    if isinstance(done, FoundModel):
        return EXIT_DIFFERENT if done.verdict is None else exit_of([done.verdict])
    return 0


def _check_several(models: Sequence[Path], budget: str | None, out: Path | None) -> None:
    """Raise FerruleError for several models without a search, or without a name for the one that is chosen."""
    if budget is None:
        raise FerruleError(
            f"{len(models)} models are given, and one is quantised at a time",
            hint="--budget flash=256K,ms=50 searches for the best of several",
        )
    if out is None:
        raise FerruleError("--out is missing: of several models, the file of the best one has no name of its own")


def _divided(data: Sequence[str], models: int) -> list[Sequence[str]]:
    """Return the --data of each model; FerruleError if they cannot be divided evenly."""
    if len(data) == 1:
        return [data] * models
    each, rest = divmod(len(data), models)
    if rest:
        raise FerruleError(f"{len(data)} --data are given for {models} models, expected one, or as many for each model")
    return [data[index * each : (index + 1) * each] for index in range(models)]


def _refuse_others(searched: dict[str, Any], options: JobOptions) -> None:
    """Raise FerruleError for an option that is for a search alone."""
    given = [name for name in ("metric", "scheduler", "results") if searched[name] is not None]
    if given or options.board is not None:
        raise FerruleError(f"--{(given or ['board'])[0]} is for a search", hint="--budget flash=256K,ms=50 searches")
