# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of one float32 tensor without parameters, one row per function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.movement import check_types
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.sample import sample_unary
from ferrule.operators.unary import infer_same_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementwiseUnaryDescriptor(Descriptor):
    """One input, one output."""


def check(descriptor: ElementwiseUnaryDescriptor, operands: Operands) -> None:
    """Refuse every type except float32, the only one with kernels in TensorFlow Lite Micro."""
    del descriptor
    check_types(operands, frozenset({DataType.FLOAT32}))


def _kernel(
    function: Callable[[Array], Array],
    descriptor: ElementwiseUnaryDescriptor,
    operands: Operands,
    arrays: Sequence[Array | None],
) -> list[Array]:
    del descriptor, operands
    return [function(np.asarray(arrays[0]))]


def _operator(type_: LayerType, function: Callable[[Array], Array]) -> Operator:
    """Return the operator row for a numpy function that is exact in float32."""
    return Operator(
        descriptor=ElementwiseUnaryDescriptor,
        type=type_,
        infer=infer_same_shape,
        check=check,
        kernel=partial(_kernel, function),
        sample=sample_unary(lambda _: ElementwiseUnaryDescriptor()),
    )


ELEMENTWISE_UNARY: tuple[Operator, ...] = (
    _operator(LayerType.CEIL, np.ceil),
    _operator(LayerType.FLOOR, np.floor),
    _operator(LayerType.NEG, np.negative),
)
"""The operators, sorted by name."""
