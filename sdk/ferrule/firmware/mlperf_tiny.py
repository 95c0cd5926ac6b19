# SPDX-License-Identifier: Apache-2.0
"""The application `mlperf-tiny`: a firmware that answers the runner of MLPerf Tiny instead of Ferrule's link.

Names, sizes and conversions are those of the reference firmwares of MLPerf Tiny 1.x (docs/mlperf_tiny.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from ferrule._frozen import frozen, positional
from ferrule.boards import Board
from ferrule.codegen import Program
from ferrule.errors import FerruleError, unknown_name
from ferrule.graph import DataType, TensorInfo
from ferrule.rendering.quoting import Verbatim

LINK_APP, MLPERF_APP, CALIBRATION_APP = "link", "mlperf-tiny", "calibration"
"""The applications of a project: Ferrule's link, MLPerf Tiny's protocol, and Ferrule's link with micro-programs."""
APPS = (LINK_APP, MLPERF_APP, CALIBRATION_APP)
VENDOR = "Ferrule"
SERVES = "ferrule_mlperf_tiny_serve"
"""The function by which a firmware of this application is known."""
MICRO_PROGRAMS = "ferrule_micro_programs_link_model"
"""The model by which a firmware of the application `calibration` is known."""
_MEGAHERTZ = 1_000_000


class Conversion(StrEnum):
    """How the bytes that the runner sends become the model's input: a suffix of enum ferrule_mlperf_tiny_input."""

    AS_IS = "AS_IS"
    UINT8 = "UINT8"
    FLOAT32 = "FLOAT32"


@positional
class Benchmark:
    """A benchmark of MLPerf Tiny."""

    name: str
    """Its name in the runner's scripts and folders of data."""
    inputs: int
    """Elements of the model's input."""
    outputs: int
    conversion: Conversion
    error: bool = False
    """Whether the result is the mean squared difference of output and input, instead of the output."""

    @property
    def received_bytes(self) -> int:
        """Bytes of one input as the runner sends it."""
        return self.inputs * (4 if self.conversion is Conversion.FLOAT32 else 1)


BENCHMARKS: Mapping[str, Benchmark] = {
    each.name: each
    for each in (
        Benchmark("kws01", 490, 12, Conversion.AS_IS),
        Benchmark("vww01", 96 * 96 * 3, 2, Conversion.UINT8),
        Benchmark("ic01", 32 * 32 * 3, 10, Conversion.UINT8),
        Benchmark("ad01", 640, 640, Conversion.FLOAT32, error=True),
    )
}
"""The benchmarks of single inferences; the streaming one needs audio from the runner's own board."""


@frozen
class RunnerValues:
    """The values of a main.c that answers the runner."""

    benchmark: Benchmark
    quantized_elements: int
    """Elements of the buffer for the quantised input; 0 if there is none."""
    cycles_per_us: int
    input_scale: Verbatim
    """A literal in C."""
    input_zero_point: int
    output_scale: Verbatim
    output_zero_point: int


def check_app(app: str, platform: str) -> None:
    """Raise FerruleError if there is no such application, or not on this platform."""
    name, separator, benchmark = app.partition(":")
    if name not in APPS or (separator and name != MLPERF_APP):
        raise unknown_name("application", app, [*APPS, *(f"{MLPERF_APP}:{each}" for each in BENCHMARKS)])
    if separator and benchmark not in BENCHMARKS:
        raise unknown_name("benchmark of MLPerf Tiny", benchmark, BENCHMARKS)
    if name != LINK_APP and platform != "bare-metal":
        raise FerruleError(f"the application {name} is for bare metal, not for {platform}")


def is_runner(app: str) -> bool:
    """Return whether an application answers the runner of MLPerf Tiny."""
    return app.partition(":")[0] == MLPERF_APP


def runner_values(app: str, program: Program, board: Board) -> RunnerValues:
    """Return the values for a program's main.c; the benchmark follows from the model's shapes if `app` names none.

    Raises:
        FerruleError: the model is not that of a benchmark, or the board's clock is not a multiple of 1 MHz.
    """
    if program.single is None or program.has_state:
        raise FerruleError(
            "the runner of MLPerf Tiny drives one model without state",
            hint=f"benchmarks: {', '.join(BENCHMARKS)}; the streaming one is not among them",
        )
    if board.clock_hz % _MEGAHERTZ:
        raise FerruleError(f"the clock of board {board.name} is {board.clock_hz} Hz, expected a multiple of 1 MHz")
    graph = program.single.graph
    if len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise FerruleError(f"model '{graph.name}' has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs")
    (source,), (result,) = graph.inputs, graph.outputs
    benchmark = _benchmark(app.partition(":")[2], graph.name, source, result)
    (input_scale, input_zero_point), (output_scale, output_zero_point) = _quantization(source), _quantization(result)
    return RunnerValues(
        benchmark=benchmark,
        quantized_elements=source.elements if benchmark.conversion is Conversion.FLOAT32 else 0,
        cycles_per_us=board.clock_hz // _MEGAHERTZ,
        input_scale=input_scale,
        input_zero_point=input_zero_point,
        output_scale=output_scale,
        output_zero_point=output_zero_point,
    )


def _benchmark(name: str, model: str, source: TensorInfo, result: TensorInfo) -> Benchmark:
    found = f"{source.dtype}{list(source.shape)} to {result.dtype}{list(result.shape)}"
    sizes = source.elements, result.elements
    if name:
        chosen = BENCHMARKS[name]
    else:
        fitting = [each for each in BENCHMARKS.values() if (each.inputs, each.outputs) == sizes]
        if not fitting:
            listed = ", ".join(f"{each.name}: {each.inputs} to {each.outputs}" for each in BENCHMARKS.values())
            raise FerruleError(
                f"model '{model}' ({found}) is of no benchmark of MLPerf Tiny", hint=f"they are {listed}"
            )
        chosen = fitting[0]
    if (chosen.inputs, chosen.outputs) != sizes:
        raise FerruleError(
            f"model '{model}' is {found}, but benchmark {chosen.name} has {chosen.inputs} elements in and "
            f"{chosen.outputs} out"
        )
    if source.dtype is not DataType.INT8 or result.dtype not in {DataType.INT8, DataType.FLOAT32}:
        raise FerruleError(
            f"model '{model}' is {found}, but the runner's inputs are for int8, with an output of int8 or float32"
        )
    return chosen


def _quantization(info: TensorInfo) -> tuple[Verbatim, int]:
    """Return the scale of a tensor, as a literal in C, and its zero point."""
    found = info.quantization
    text = str(np.float32(1.0 if found is None else found.scales[0]))
    literal = Verbatim(f"{text}f" if "." in text or "e" in text else f"{text}.0f")
    return literal, 0 if found is None else found.zero_points[0]
