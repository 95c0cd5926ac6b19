# SPDX-License-Identifier: Apache-2.0
"""LOOKUP: a function of 8 bits as a table of its results, as which the optimizer writes chains of layers in float32."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.movement.checks import check_types
from ferrule.operators.operator import EVERY_INT8, Operands, Operator, look_up, of_one
from ferrule.operators.sample import LayerSample


@frozen
class LookupDescriptor(Descriptor):
    """One int8 input, one int8 output."""

    table: tuple[int, ...]
    """The stored results, -128 to 127, for the stored values from -128 to 127."""


def _check(descriptor: LookupDescriptor, operands: Operands) -> None:
    check_types(operands, frozenset({DataType.INT8}))
    if len(descriptor.table) != EVERY_INT8.size or not set(descriptor.table) <= set(EVERY_INT8.tolist()):
        raise UnsupportedError(f"the table has {len(descriptor.table)} entries, expected 256 of int8")


def _kernel(descriptor: LookupDescriptor, _: Operands, data: Array) -> Array:
    return look_up(np.array(descriptor.table, np.int8), data)


def _sample(sample: LayerSample) -> LookupDescriptor:
    sample.take(sample.shape())
    return LookupDescriptor(table=tuple(sample.dice.randint(-128, 127) for _ in EVERY_INT8))


LOOKUP = Operator(
    descriptor=LookupDescriptor,
    type=LayerType.LOOKUP,
    check=_check,
    kernel=of_one(_kernel),
    sample=_sample,
    elementwise=True,
)
