# SPDX-License-Identifier: Apache-2.0
"""`ferrule convert`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import echo, print_json, print_rows
from ferrule.cli.options import json_option, model_argument
from ferrule.cli.parameters import FILE, option, several
from ferrule.cli.reading import ReadingOptions, reading_options
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.network.rounding import RoundingChange

_SAMPLES = 8
"""The number of random samples, if no input is given."""


@click.command("convert")
@model_argument
@click.argument("output", type=FILE)
@option(
    "--rounding",
    "Let layers that round by another rule round by that of TensorFlow Lite Micro, and count the results that "
    "this changes. Without it, such layers are refused.",
    kind=["tflm"],
)
@several(
    "--input",
    "[NAME=]FILE.npy",
    "An input array with which to count; for several inputs, repeat the option with their names. For n samples, "
    f"the first axis is n times as long.  [default: {_SAMPLES} random samples]",
    "inputs",
)
@json_option
@reading_options(rounding=False)
def command(
    model: Path, output: Path, rounding: str | None, inputs: tuple[str, ...], as_json: bool, reading: ReadingOptions
) -> None:
    """Write MODEL as a TensorFlow Lite file, OUTPUT.

    The layers, shapes, quantisations and data stay. A TensorFlow Lite file cannot state the rules by which layers
    round: those of ONNX models are refused, unless --rounding changes them. The report then states for each changed
    layer how many of its results differ, given the same inputs, and how many elements of the network's outputs.
    """
    from ferrule.cli.arrays import parse_input_options, require_writable, save
    from ferrule.formats import to_tflite
    from ferrule.graph import Rounding
    from ferrule.network.rounding import RoundingChange, rounding_change
    from ferrule.network.samples import random_sample, split

    if output.suffix.lower() != ".tflite":
        raise FerruleError(f"{output} has the suffix '{output.suffix}', expected '.tflite'")
    if inputs and rounding is None:
        raise FerruleError("--input is given without --rounding, for which it counts results")
    require_writable("OUTPUT", output)
    (network,) = reading.load([model])
    rule = None if rounding is None else Rounding.TFLM
    data = to_tflite(network, rounding=rule)
    change = RoundingChange(layers=(), outputs=())
    if rule is not None:
        arrays = parse_input_options(inputs, network.inputs) if inputs else None
        samples = [random_sample(network.inputs, seed) for seed in range(_SAMPLES)]
        change = rounding_change(network, rule, samples if arrays is None else split(network.inputs, arrays))
    save(output, data)
    if as_json:
        print_json(change)
        return
    _print(change)
    echo(f"{output}: {len(network.layers)} layers, {len(data)} bytes")


def _print(change: RoundingChange) -> None:
    from ferrule.report.sections import numbers

    if not change.layers:
        return
    rows = [
        (layer.name, str(layer.type), str(layer.rounding), _share(layer.differing, layer.results))
        for layer in change.layers
    ]
    print_rows(("layer", "type", "rule before", *numbers("results that differ")), rows)
    for output in change.outputs:
        echo(f"output '{output.name}': {_share(output.differing, output.results)} elements differ")


def _share(differing: int, results: int) -> str:
    return f"{differing} of {results}"
