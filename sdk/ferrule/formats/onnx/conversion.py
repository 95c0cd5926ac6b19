# SPDX-License-Identifier: Apache-2.0
"""Rows of the conversions between integers and real numbers, as `quantised` leaves them."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.formats.onnx.call import Call
from ferrule.formats.onnx.rows import Row
from ferrule.graph import DataType, LayerType
from ferrule.operators.quantize import DequantizeDescriptor, QuantizeDescriptor


def _quantize(call: Call) -> None:
    """Add the conversion to the stored type of the output."""
    source, layout = call.place(0)
    call.finish(LayerType.QUANTIZE, QuantizeDescriptor(), source, layout=layout)


def _dequantize(call: Call) -> None:
    source, layout = call.place(0)
    call.finish(LayerType.DEQUANTIZE, DequantizeDescriptor(), source, layout=layout, dtype=DataType.FLOAT32)


ROWS: Mapping[str, Row] = {
    "DequantizeLinear": Row(emit=_dequantize, inputs=range(1, 4)),
    "QuantizeLinear": Row(emit=_quantize, inputs=range(1, 4)),
}
