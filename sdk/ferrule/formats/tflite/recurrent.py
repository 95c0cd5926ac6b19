# SPDX-License-Identifier: Apache-2.0
"""SVDF and UNIDIRECTIONAL_SEQUENCE_LSTM, whose state is in variable tensors of the file."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.emitter import Emitter
from ferrule.formats.tflite.node import Node, finite
from ferrule.formats.tflite.row import Row, by_type
from ferrule.graph import DataType, Descriptor, Layer, LayerType
from ferrule.operators.recurrent.lstm import ABSENT, CELL, GATES, HIDDEN, LstmDescriptor
from ferrule.operators.recurrent.svdf import STATE

_TABLE = "UnidirectionalSequenceLSTMOptions"
_TANH = 4
"""The value of the schema's enum ActivationFunctionType."""
_LSTM_INPUTS = 24


def _read_lstm(node: Node) -> Descriptor:
    options = node.options(_TABLE)
    if options.fused_activation_function != _TANH:
        raise UnsupportedError(f"its activation is number {options.fused_activation_function}, expected TANH ({_TANH})")
    return LstmDescriptor(time_major=options.time_major, cell_clip=max(finite(options.cell_clip, "cell_clip"), 0.0))


def _intermediates(emitter: Emitter, layer: Layer) -> tuple[str, ...]:
    """Return five tensors for integers: TensorFlow Lite's kernel and Arm's compiler expect them; the last is in use."""
    hidden = emitter.output_info(layer)
    if not hidden.dtype.is_quantizable:
        return ()
    return (
        *(emitter.intermediate(layer, f"input_to_{gate}", DataType.FLOAT32, None) for gate in GATES),
        emitter.intermediate(layer, "effective_hidden_scale", hidden.dtype, hidden.quantization),
    )


ROWS: Mapping[LayerType, Row] = {
    LayerType.SVDF: Row(
        "SVDFOptions",
        ["rank", "activation"],
        version=by_type(int8=3),
        data_inputs=range(5),
        inputs=range(5, 6),
        optional=frozenset({3}),
        state_inputs=(STATE,),
    ),
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: Row(
        _TABLE,
        [("fused_activation_function", _TANH), "cell_clip", "time_major"],
        reader=_read_lstm,
        version=lambda written: 5 if written.dtype is DataType.INT16 else 1,
        data_inputs=range(_LSTM_INPUTS),
        inputs=range(CELL + 1, _LSTM_INPUTS + 1),
        optional=ABSENT,
        state_inputs=(HIDDEN, CELL),
        least_inputs=_LSTM_INPUTS,
        intermediates=_intermediates,
    ),
}
"""The rows of these operators."""
