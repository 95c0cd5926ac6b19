# SPDX-License-Identifier: Apache-2.0
"""The options with which commands read models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule._frozen import frozen
from ferrule.cli.parameters import Option, collected, flag, option, several
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.network import Network

STANDARD_INPUT = Path("-")
"""The model's file that stands for standard input; a file of that name has a path, such as its absolute one."""
ITERATIONS = 10_000
"""The default of --max-iterations; a test compares it with the operator's."""
VERSIONS = ("tflm", "litert-2.3")
"""The values of --rounding; a test compares them with the format's."""
ARITHMETICS = ("optimised", "as-written")
"""The values of --onnx-arithmetic; a test compares them with the format's."""


@frozen
class ReadingOptions:
    """How models are read, as typed by the user."""

    dequantize_weights: bool
    max_iterations: int
    states: tuple[str, ...]
    signature: str | None
    onnx_arithmetic: str | None
    shapes: tuple[str, ...] = ()
    rounding: str | None = None

    def load(self, models: Sequence[Path], names: Sequence[str] = ()) -> list[Network]:
        """Return the networks of model files, with names if they are given.

        Raises:
            FerruleError: there is not one name for each model, a file or standard input cannot be read, no model has
                an input or output of --state, or a model has no input of --shape.
        """
        from ferrule import formats
        from ferrule.formats.onnx import parsed_shapes

        if names and len(names) != len(models):
            raise FerruleError(f"--name is given {len(names)} times for {len(models)} models, expected one for each")
        if models.count(STANDARD_INPUT) > 1:
            raise FerruleError("standard input (-) has one model, and is given several times")
        given: Sequence[str | None] = names or [None] * len(models)
        shapes = parsed_shapes(self.shapes)
        networks = [
            formats.load(
                _from_standard_input() if model == STANDARD_INPUT else model,
                name,
                dequantize_weights=self.dequantize_weights,
                max_iterations=self.max_iterations,
                rounding=self.rounding,
                signature=self.signature,
                onnx_arithmetic=self.onnx_arithmetic,
                shapes=shapes,
            )
            for model, name in zip(models, given, strict=True)
        ]
        for state in self.states:
            _keep(state, networks)
        return networks


def _from_standard_input() -> bytes:
    """Return the model that standard input has; FerruleError if it has none."""
    from ferrule.budget import Resource, current
    from ferrule.reading import read_standard_input

    try:
        return read_standard_input(current().limits[Resource.BYTES])
    except OSError as error:
        raise FerruleError(f"-: {error.strerror}", hint="ferrule inspect - < model.tflite") from error


def _keep(state: str, networks: Sequence[Network]) -> None:
    """Make an input and an output of each network that has this input a state."""
    source, separator, output = state.partition("=")
    if not (source and separator and output):
        raise FerruleError(f"--state {state}: expected INPUT=OUTPUT, two names of the model's tensors")
    having = [network for network in networks if source in {info.name for info in network.inputs}]
    for network in having or networks[:1]:
        network.keep_output(output, source)


_ROUNDING = option(
    "--rounding",
    "The program whose rounding the layers of a TensorFlow Lite model have: TensorFlow Lite Micro (the default), "
    "or LiteRT with XNNPACK (docs/operators.md).",
    kind=VERSIONS,
)


def reading_options(*, rounding: bool = True) -> Option:
    """Add the options with which models are read, passed as one argument `reading`; `rounding` includes --rounding."""
    return collected(
        "reading",
        ReadingOptions,
        flag(
            "--dequantize-weights",
            "Compute layers with float32 activations and int8 weights with float32 weights, instead of refusing them.",
        ),
        option(
            "--max-iterations",
            "The most iterations of a WHILE in one run, which fails with more.",
            kind=click.IntRange(1, 2**31 - 1),
            default=ITERATIONS,
        ),
        option(
            "--onnx-arithmetic",
            "How operators of an ONNX model between DequantizeLinear and QuantizeLinear compute: as onnxruntime "
            "does after its optimiser (the default), or in float32, as the file has it (docs/onnx.md).",
            kind=ARITHMETICS,
        ),
        several(
            "--shape",
            "NAME=EXTENTS",
            "The shape of an input of an ONNX model, such as image=1,3,32,32, if the file leaves extents open.",
            "shapes",
        ),
        several(
            "--state",
            "INPUT=OUTPUT",
            "Keep the value of an output for the same input of the next run, as a state (docs/state.md), if the "
            "model leaves that to its caller. Neither is then an input or output.",
            "states",
        ),
        option(
            "--signature",
            "The signature of a TensorFlow Lite model with several ones, such as serving_default; "
            "`ferrule inspect` lists them.",
            metavar="NAME",
        ),
        *((_ROUNDING,) if rounding else ()),
    )
