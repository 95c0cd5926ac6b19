# SPDX-License-Identifier: Apache-2.0
"""Layers that Vela 5.2 compiles, and whose results are not those of TensorFlow Lite Micro.

Found by comparing streams of random layers with the reference. Some are defects of the compiler, others another
rounding; the NPU's backend refuses them, since firmware is to have the bits of the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ferrule.graph import DataType, Layer, LayerType
from ferrule.operators.operator import Operands

Check = Callable[[Any, Operands], bool]


def otherwise(layer: Layer, operands: Operands) -> str:
    """Return what Vela computes otherwise for a layer; "" if nothing is known."""
    check, what = TABLE.get(layer.type, (_never, ""))
    return f"Vela 5.2 {what}" if check(layer.descriptor, operands) else ""


def _never(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del descriptor, operands
    return False


def _always(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del descriptor, operands
    return True


def _int16(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del descriptor
    return operands.input(0).dtype is DataType.INT16


def _drops_axes(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del operands
    return not descriptor.keep_dims


def _clips(descriptor: Any, operands: Operands) -> bool:  # noqa: ANN401
    del operands
    return bool(descriptor.cell_clip)


_SELECTS = (_drops_axes, "reduces other elements where keep_dims is false")
TABLE: Mapping[LayerType, tuple[Check, str]] = {
    LayerType.MUL: (_int16, "rounds some int16 products otherwise than TensorFlow Lite Micro, by 1"),
    LayerType.SOFTMAX: (_int16, "rounds some int16 results otherwise than TensorFlow Lite Micro, by 1"),
    LayerType.LEAKY_RELU: (_int16, "rounds some int16 results otherwise than TensorFlow Lite Micro, by 1"),
    LayerType.SUM: (_always, "rounds sums otherwise than TensorFlow Lite Micro, and mistakes several axes"),
    LayerType.REDUCE_MAX: _SELECTS,
    LayerType.REDUCE_MIN: _SELECTS,
    LayerType.UNIDIRECTIONAL_SEQUENCE_LSTM: (_clips, "clips the cell otherwise than TensorFlow Lite Micro"),
}
"""For each type of layer, a condition and what is otherwise."""
