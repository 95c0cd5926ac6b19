# SPDX-License-Identifier: Apache-2.0
"""SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM, whose state is in variable tensors of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.encoder import Options
from ferrule.formats.tflite.node import Node, activation, finite
from ferrule.formats.tflite.row import Row, by_type, write_options
from ferrule.graph import DataType, Descriptor, Layer, LayerType, TensorInfo
from ferrule.operators.lstm import ABSENT, CELL, GATES, HIDDEN, LstmDescriptor
from ferrule.operators.svdf import STATE, SvdfDescriptor

_TANH = 4
"""The value of the schema's enum ActivationFunctionType."""
_LSTM_INPUTS = 24


def _read_svdf(node: Node) -> Descriptor:
    options = node.options("SVDFOptions")
    return SvdfDescriptor(rank=options.Rank(), activation=activation(options.FusedActivationFunction()))


def _read_lstm(node: Node) -> Descriptor:
    options = node.options("UnidirectionalSequenceLSTMOptions")
    if options.FusedActivationFunction() != _TANH:
        raise UnsupportedError(f"its activation is number {options.FusedActivationFunction()}, expected TANH ({_TANH})")
    return LstmDescriptor(time_major=options.TimeMajor(), cell_clip=max(finite(options.CellClip(), "cell_clip"), 0.0))


def _write_lstm(emitter: Emitter, layer: Layer, descriptor: Any) -> None:  # noqa: ANN401
    fields = {
        "FusedActivationFunction": _TANH,
        "CellClip": descriptor.cell_clip,
        "TimeMajor": descriptor.time_major,
    }
    options = Options(table="UnidirectionalSequenceLSTMOptions", fields=fields)
    hidden = emitter.output_info(layer)
    intermediates = []
    if hidden.dtype.is_quantizable:  # TensorFlow Lite's kernel and Arm's compiler expect five; the last is in use
        intermediates = [emitter.intermediate(layer, f"input_to_{gate}", DataType.FLOAT32, None) for gate in GATES] + [
            emitter.intermediate(layer, "effective_hidden_scale", hidden.dtype, hidden.quantization)
        ]
    emitter.emit(layer, options, least_inputs=_LSTM_INPUTS, intermediates=intermediates)


def _lstm_version(descriptor: Descriptor, inputs: Sequence[TensorInfo], output: TensorInfo) -> int:
    return by_type(int16=5)(descriptor, inputs[:1], output)


ROWS: Mapping[LayerType, Row] = {
    LayerType.SVDF: Row(
        read=_read_svdf,
        write=write_options("SVDFOptions", Rank="rank", FusedActivationFunction="activation"),
        version=by_type(int8=3),
        data_inputs=range(5),
        inputs=range(5, 6),
        optional=frozenset({3}),
        state_inputs=(STATE,),
    ),
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: Row(
        read=_read_lstm,
        write=_write_lstm,
        version=_lstm_version,
        data_inputs=range(_LSTM_INPUTS),
        inputs=range(CELL + 1, _LSTM_INPUTS + 1),
        optional=ABSENT,
        state_inputs=(HIDDEN, CELL),
    ),
}
"""The rows of these operators."""
