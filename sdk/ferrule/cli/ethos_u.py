# SPDX-License-Identifier: Apache-2.0
"""`ferrule ethos-u`: streams of Vela on the functional model of the NPU, without a network or a board."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ferrule.cli.console import echo, print_json, print_rows
from ferrule.cli.main import EXIT_DIFFERENT
from ferrule.cli.options import json_option
from ferrule.cli.parameters import PATH, flag, several
from ferrule.errors import FerruleError

if TYPE_CHECKING:
    from ferrule.backends.ethos_u.compiled import StreamTensor
    from ferrule.backends.ethos_u.npu import Step
    from ferrule.backends.ethos_u.standalone import EthosUStream, StreamRun
    from ferrule.graph import TensorInfo

_PREVIEW = 16
"""Elements of an output that are printed."""

stream_argument = click.argument("path", metavar="STREAM.NPZ", type=PATH)


@click.group("ethos-u")
def command() -> None:
    """Execute the streams that Arm's compiler Vela writes for Ethos-U55 and Ethos-U65 (docs/ethos_u.md).

    Such a file is what `vela MODEL.tflite --output-format raw` writes.
    """


@command.command("show")
@stream_argument
@json_option
def show(path: Path, as_json: bool) -> None:
    """Show a stream: its configuration, its memory, its tensors, and its operations with their MACs and bytes."""
    from ferrule.backends.ethos_u import EthosUStream

    stream = EthosUStream.read(path)
    if as_json:
        print_json(_described(stream) | {"operations": [_row_of(step) for step in stream.operations()]})
        return
    _print_head(stream)
    _print_operations(stream.operations())


@command.command("run")
@stream_argument
@several(
    "--input",
    "[NAME=]X.NPY",
    "An input's stored values; for several inputs, repeat the option with their names (input0, input1...).",
    "inputs",
)
@several(
    "--output",
    "[NAME=]Y.NPY",
    "Write an output to this file; for several outputs, repeat the option with their names.",
    "outputs",
)
@several("--state", "NAME=X.NPY", "A state's stored values at first.  [default: 0]", "states")
@flag("--check-hazards", "Also find accesses that the stream does not order.")
@flag("--trace", "Print the operations with their MACs and bytes.")
@json_option
def run(
    path: Path,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    states: tuple[str, ...],
    check_hazards: bool,
    trace: bool,
    as_json: bool,
) -> int:
    """Execute a stream once and print or write its outputs.

    The results are those of TensorFlow Lite Micro's kernels, bit for bit, with the exceptions in docs/ethos_u.md; the
    model was not compared with silicon. Exit code: 0, or 1 if --check-hazards finds a hazard, 2 for an error.
    """
    from ferrule.backends.ethos_u import EthosUStream
    from ferrule.cli.arrays import parse_input_options, parse_output_options, save_array

    stream = EthosUStream.read(path, check_hazards=check_hazards)
    if not inputs and stream.inputs:
        raise FerruleError(
            "no input is given", hint=" ".join(f"--input {each.name}={each.name}.npy" for each in stream.inputs)
        )
    places = parse_output_options(outputs, _infos(stream.outputs))
    stream.reset(parse_input_options(states, _infos(stream.states), "state"))
    done = stream.run(parse_input_options(inputs, _infos(stream.inputs)))
    for name, place in places.items():
        save_array(place, done.outputs[name])
    if as_json:
        print_json(_result(stream, done, trace=trace))
    else:
        _print_result(stream, done, trace=trace, written=places)
    return EXIT_DIFFERENT if done.hazards else 0


def _infos(tensors: Sequence[StreamTensor]) -> list[TensorInfo]:
    from ferrule.backends.ethos_u.standalone import plain_shape
    from ferrule.graph import TensorInfo

    return [TensorInfo(tensor.name, plain_shape(tensor), tensor.dtype) for tensor in tensors]


def _described(stream: EthosUStream) -> dict[str, object]:
    compiled = stream.stream
    return {
        "configuration": compiled.configuration.name,
        "digest": compiled.digest,
        "payload_bytes": len(compiled.payload),
        "read_only_bytes": len(compiled.read_only),
        "scratch_bytes": compiled.scratch_bytes,
        "fast_scratch_bytes": compiled.fast_scratch_bytes,
        **{name: [_tensor(each) for each in getattr(stream, name)] for name in ("inputs", "outputs", "states")},
    }


def _tensor(tensor: StreamTensor) -> dict[str, object]:
    from ferrule.backends.ethos_u.standalone import plain_shape

    return {
        "name": tensor.name,
        "shape": plain_shape(tensor),
        "dtype": str(tensor.dtype),
        "region": tensor.region,
        "offset": tensor.offset,
        "bytes": tensor.size_bytes,
    }


def _row_of(step: Step) -> dict[str, object]:
    return {
        "word": step.operation.word_offset,
        "operation": step.operation.name,
        "macs": step.macs,
        "bytes_read": step.bytes_read,
        "bytes_written": step.bytes_written,
    }


def _result(stream: EthosUStream, done: StreamRun, *, trace: bool) -> dict[str, object]:
    document: dict[str, object] = {
        "configuration": stream.stream.configuration.name,
        "outputs": {name: array.tolist() for name, array in done.outputs.items()},
        "macs": done.macs,
        "hazards": done.hazards,
    }
    return document | ({"operations": [_row_of(step) for step in done.steps]} if trace else {})


def _print_head(stream: EthosUStream) -> None:
    from ferrule.backends.ethos_u.standalone import plain_shape
    from ferrule.report.sections import numbers

    compiled = stream.stream
    echo(f"{compiled.configuration.name}, digest {compiled.digest}")
    regions = [
        ("", "command stream", len(compiled.payload)),
        ("0", "read-only: weights, scales, tables", len(compiled.read_only)),
        ("1", "scratch", compiled.scratch_bytes),
    ]
    if compiled.fast_scratch_bytes:
        regions.append(("2", "fast scratch", compiled.fast_scratch_bytes))
    print_rows((*numbers("region"), "what", *numbers("bytes")), regions)
    tensors = [
        (each.name, " x ".join(map(str, plain_shape(each))), str(each.dtype), str(each.region), f"{each.offset:#x}")
        for each in (*stream.inputs, *stream.outputs, *stream.states)
    ]
    print_rows(("tensor", "shape", "type", *numbers("region", "offset")), tensors)


def _print_operations(steps: Sequence[Step]) -> None:
    from ferrule.report.sections import names, numbers

    rows = [
        (
            str(step.operation.word_offset),
            step.operation.name,
            *(count or None for count in (step.macs, step.bytes_read, step.bytes_written)),
        )
        for step in steps
    ]
    columns = (*numbers("word"), *names("operation"), *numbers("MACs", "bytes read", "bytes written"))
    print_rows(columns, rows)
    macs, read, written = (sum(getattr(s, name) for s in steps) for name in ("macs", "bytes_read", "bytes_written"))
    echo(f"{len(steps)} operations, {macs:,} MACs, {read:,} bytes read, {written:,} bytes written")


def _print_result(stream: EthosUStream, done: StreamRun, *, trace: bool, written: dict[str, Path]) -> None:
    from ferrule.rendering import shown

    if trace:
        _print_operations(done.steps)
    for name, array in done.outputs.items():
        values = array.reshape(-1)
        more = f" ... ({values.size:,} elements)" if values.size > _PREVIEW else ""
        where = f", written to {shown(str(written[name]))}" if name in written else ""
        echo(f"{name} {'x'.join(map(str, array.shape))} {array.dtype}{where}: {values[:_PREVIEW].tolist()}{more}")
    for hazard in done.hazards:
        echo(f"hazard: {hazard}")
    echo(f"{stream.stream.configuration.name}: {len(done.steps)} operations, {done.macs:,} MACs")
