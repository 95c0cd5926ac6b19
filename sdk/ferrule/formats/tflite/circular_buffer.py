# SPDX-License-Identifier: Apache-2.0
"""Reads and writes CIRCULAR_BUFFER, a custom operator."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.row import Row, write_custom
from ferrule.graph import Descriptor, LayerType
from ferrule.operators.circular_buffer import CircularBufferDescriptor

_CYCLES = "cycles_max"
_LAST_SLOTS = frozenset({5, 13, 25})
"""Without the option, TensorFlow Lite Micro takes a period of 1 run for these numbers of slots, and of 2 for others."""
_AMBIGUOUS = (2, 96)
"""The width and depth for which it takes the number of such operators in all models into account, too."""


def _read(node: Node) -> Descriptor:
    shape = node.output().shape
    if len(shape) != 4:
        raise ModelError(f"its output has shape {list(shape)}, expected 4 axes")
    cycles = 0
    if node.custom_options():
        cycles = node.custom_values(**{_CYCLES: int})[_CYCLES]
    if cycles <= 0:
        if shape[1] not in _LAST_SLOTS and shape[2:] == _AMBIGUOUS:
            raise UnsupportedError(
                f"it has no option '{_CYCLES}', and the period that TensorFlow Lite Micro takes for frames of "
                f"{list(_AMBIGUOUS)} depends on other models",
                hint=f"set {_CYCLES} to the number of runs of a period",
            )
        cycles = 1 if shape[1] in _LAST_SLOTS else 2
    return CircularBufferDescriptor(slots=shape[1], cycles=cycles)


ROWS: Mapping[LayerType, Row] = {
    LayerType.CIRCULAR_BUFFER: Row(
        read=_read,
        write=write_custom("CIRCULAR_BUFFER", cycles_max="cycles"),
        custom="CIRCULAR_BUFFER",
        keeps_output=True,
    ),
}
"""The operator of this module."""
