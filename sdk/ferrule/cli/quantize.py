# SPDX-License-Identifier: Apache-2.0
"""`ferrule quantize`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ferrule.cli import limits
from ferrule.cli.console import echo
from ferrule.cli.options import config_option, model_argument, quiet_option
from ferrule.cli.outputs import Outputs, outputs_options
from ferrule.cli.parameters import FILE, NATURAL, collected, option, several
from ferrule.cli.progress import progress
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.errors import FerruleError


@click.command("quantize")
@model_argument
@collected(
    "asked",
    dict,
    several(
        "--data",
        "[NAME=]D",
        "The samples, as for ferrule evaluate: .npy, .npz, .csv, a folder of images or .wav files, or "
        "FILE.py:function, which is run (docs/data.md). NAME=FILE.npy for each input of a model with several.",
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
        "percentile or percentile=99.9.",
        default="minmax",
        metavar="RULE",
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
)
@option(
    "--out",
    "The file of the quantised model, a .tflite.  [default: MODEL_int8.tflite or MODEL_int16.tflite, here]",
    kind=FILE,
)
@config_option
@reading_options(rounding=False)
@outputs_options("quantization")
@quiet_option
def command(
    model: Path,
    asked: dict[str, Any],
    out: Path | None,
    config: Path | None,
    reading: ReadingOptions,
    results: Outputs,
    quiet: bool,
) -> None:
    """Turn the float32 MODEL (.tflite or .onnx) into one of integers, calibrated with your samples.

    Ferrule observes the values of all tensors on the samples and chooses their ranges; the package ai-edge-quantizer
    writes the integers (pip install 'ferrule[quantize]'). The report says what each layer loses against the float
    model, and which layers stay in float32 and why. Settings of the data come from [data] of ferrule.toml.
    """
    from ferrule.cli.arrays import require_writable, save
    from ferrule.progress import Step
    from ferrule.quantization import quantize
    from ferrule.running.configuration import read_configuration

    file = out or Path(f"{model.stem}_{asked['scheme']}.tflite")
    if file.suffix.lower() != ".tflite":
        raise FerruleError(f"--out {file} has the suffix '{file.suffix}', expected '.tflite'")
    require_writable("--out", file)
    results.check()
    settings = read_configuration(config).data
    with (
        results.failures("quantize", [model]),
        progress(quiet=quiet or results.takes_stdout) as say,
    ):
        say(Step(phase=f"importing {model}"))
        (network,) = reading.load([model])
        done = quantize(network, settings=settings, progress=say, **asked)
        data = done.tflite
    save(file, data)
    results.write([done.document], models=[model], quiet=quiet)
    if not (quiet or results.takes_stdout):
        echo(f"{file}: {done.layers} layers, {len(data):,} B")
