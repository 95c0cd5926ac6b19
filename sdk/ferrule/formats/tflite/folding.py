# SPDX-License-Identifier: Apache-2.0
"""Computes tensors that depend on constants and shapes only, when the value of one is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from ferrule._frozen import frozen
from ferrule.budget import Resource, Tally, afford, hold
from ferrule.errors import ModelError, UnsupportedError, place
from ferrule.formats.tflite.adaptation import adapted, adapted_data, narrow
from ferrule.formats.tflite.node import Node
from ferrule.formats.tflite.records import OperatorRecord
from ferrule.formats.tflite.row import Row
from ferrule.formats.tflite.tensors import Tensors, real_values
from ferrule.formats.tflite.tflm_decode import TFLM_DECODE, check_decode, decoded
from ferrule.graph import Array, DataType, Descriptor, Layer, LayerType
from ferrule.graph.tensor import read_only
from ferrule.operators.operator import Operands, keeps_nothing
from ferrule.operators.table import OPERATORS

_WORKING_BYTES = 8
"""Of each element of a constant while it is computed."""
_DECODE_STEPS = 64
"""An element that is decoded bit by bit counts as so many that numpy computes."""


@frozen
class Fold:
    """How an operator of the file is computed that does not become a layer."""

    compute: Callable[[Node], Array]
    """Returns the output; `Node.constant` gives it the data of the inputs."""
    inputs: int
    """The number of inputs; there is one output."""
    applies: Callable[[Node], bool] = lambda _: True
    """Whether this operator is computed; if not, it is read as a layer."""
    needs_data: bool = True
    """Whether `compute` reads the data of the inputs, which then must be constants, and not only their shapes."""


@frozen
class _Deferred:
    """A valid operator whose outputs can be computed; it becomes a layer if another layer reads one of them."""

    record: OperatorRecord
    layer: Layer | None
    """None if it never becomes a layer."""
    reads: tuple[int, ...]
    """The tensors whose data is read."""
    compute: Callable[[], Sequence[Array]]


class Folding:
    """The operators of one subgraph that can be computed; each is computed at most once, and only if needed."""

    def __init__(self, tensors: Tensors, tally: Tally) -> None:
        """`tally` counts the elements that the operators of a file read and write."""
        self._tensors = tensors
        self._tally = tally
        self._deferred: dict[int, _Deferred] = {}
        """By tensor: the operator that writes it."""
        self._values: dict[int, Array] = {}
        self._layers: set[int] = set()
        """Positions of the operators that have become layers."""

    def takes(self, node: Node) -> bool:
        """Take an operator of `FOLDS` or a TFLM_DECODE, and return whether it is one.

        Raises:
            UnsupportedError: it needs data that is computed at run time.
        """
        if node.record.custom_code == TFLM_DECODE:
            self._take_decode(node)
            return True
        fold = FOLDS.get(node.record.type)
        if fold is None or not fold.applies(node):
            return False
        node.check_arity(range(fold.inputs, fold.inputs + 1), range(1, 2))
        reads = node.record.inputs if fold.needs_data else ()
        if not all(map(self._is_known, reads)):
            raise UnsupportedError("its inputs are computed at run time, expected constants")
        self._defer(_Deferred(record=node.record, layer=None, reads=reads, compute=lambda: [fold.compute(node)]))
        return True

    def _take_decode(self, node: Node) -> None:
        check_decode(node)

        def compute() -> Sequence[Array]:
            with place(f"operator {node.record.index} CUSTOM '{TFLM_DECODE}'"):
                return decoded(node)

        self._defer(_Deferred(record=node.record, layer=None, reads=(), compute=compute))

    def takes_layer(self, node: Node, type_: LayerType, descriptor: Descriptor, row: Row) -> bool:
        """Take an operator that is a layer and can be computed, and return whether it is one.

        Its inputs are constants, and its work is proportional to the size of its tensors, which sums of products and
        windows are not.

        Raises:
            UnsupportedError, ModelError: the layer is not valid.
        """
        record, operator = node.record, OPERATORS[type_]
        positions = row.positions(node)
        sources = [record.inputs[position] for position in positions]
        while sources and sources[-1] == -1:
            sources.pop()
        reads = tuple(index for index in sources if index != -1)
        keeps = row.state_inputs or operator.states is not keeps_nothing
        if not operator.linear or keeps or not reads or not all(map(self._is_known, reads)):
            return False
        if any(
            index == -1 and position not in row.optional for position, index in zip(positions, sources, strict=False)
        ):
            return False
        inputs = tuple(None if index == -1 else self._tensors.info(index) for index in sources)
        outputs = tuple(self._tensors.info(index) for index in record.outputs)
        layer_inputs = tuple(adapted(record.type, row, positions, inputs))
        operands = Operands(layer_inputs, tuple(map(narrow, outputs)) if row.index_output else outputs)
        _check_shapes(operator.infer(descriptor, layer_inputs), operands, any_shape=row.any_shape)
        operator.accept(descriptor, operands)

        def compute() -> Sequence[Array]:
            arrays = [
                None if info is None else adapted_data(self._tensors.data(index), info)
                for index, info in zip(sources, layer_inputs, strict=True)
            ]
            results = operator.kernel(descriptor, operands, arrays)
            if row.any_shape or row.index_output:
                return [results[0].astype(outputs[0].dtype.numpy).reshape(outputs[0].shape)]
            return results

        layer = Layer(
            f"{type_.lower()}_{record.index}",
            type_,
            descriptor,
            inputs=tuple(None if info is None else info.name for info in inputs),
            outputs=tuple(info.name for info in operands.outputs),
        )
        self._defer(_Deferred(record=record, layer=layer, reads=reads, compute=compute))
        return True

    def layers(self, index: int) -> list[tuple[OperatorRecord, Layer, tuple[int, ...]]]:
        """Return the operators that have to become layers now because a layer reads a tensor, in their order.

        The tensors that they read as data come with them.
        The list is empty if the tensor is a constant of the file, or the result of an operator of `FOLDS`.
        """
        found = self._needed(index, lambda each: each.layer is None or each.record.index in self._layers)
        self._layers.update(each.record.index for each in found)
        return [(each.record, each.layer, each.reads) for each in found if each.layer is not None]

    def _is_known(self, index: int) -> bool:
        return self._tensors.is_constant(index) and not self._tensors.record(index).is_variable

    def _defer(self, operator: _Deferred) -> None:
        for index in operator.record.outputs:
            self._deferred[index] = operator
            self._tensors.provide(index, partial(self._value, index))

    def _value(self, index: int) -> Array:
        if index not in self._values:
            for each in self._needed(index, lambda each: each.record.outputs[0] in self._values):
                self._compute(each)
        return self._values[index]

    def _needed(self, index: int, done: Callable[[_Deferred], bool]) -> list[_Deferred]:
        """Return the operators on which a tensor depends, in their order, up to those that are done."""
        found: dict[int, _Deferred] = {}
        pending = [index]
        while pending:
            each = self._deferred.get(pending.pop())
            if each is not None and each.record.index not in found and not done(each):
                found[each.record.index] = each
                pending += each.reads
        return [found[position] for position in sorted(found)]

    def _compute(self, operator: _Deferred) -> None:
        record = operator.record
        work = sum(self._tensors.info(index).elements for index in (*operator.reads, *record.outputs))
        where = f"computing the constants up to operator {record.index} {record.type}"
        self._tally.spend(Resource.ELEMENTS, work * (_DECODE_STEPS if record.custom_code == TFLM_DECODE else 1), where)
        afford(Resource.BYTES, _WORKING_BYTES * work, where)
        for index in record.outputs:
            hold(self._tensors.info(index).size_bytes, where)
        with np.errstate(all="ignore"):
            results = operator.compute()
        for index, result in zip(record.outputs, results, strict=True):
            info = self._tensors.info(index)
            if result.shape != info.shape or result.dtype != info.dtype.numpy:
                raise ModelError(
                    f"tensor '{info.name}' is {info.dtype}{list(info.shape)}, but operator {record.index} "
                    f"{record.type} computes {result.dtype}{list(result.shape)}"
                )
            self._values[index] = read_only(np.array(result, order="C"))


def _check_shapes(shapes: Sequence[tuple[int, ...]], operands: Operands, *, any_shape: bool) -> None:
    if len(shapes) != len(operands.outputs):
        raise ModelError(f"it has {len(operands.outputs)} outputs, expected {len(shapes)}")
    for info, shape in zip(operands.outputs, shapes, strict=True):
        if info.shape != shape and not (any_shape and info.elements == math.prod(shape)):
            raise ModelError(f"output '{info.name}' has shape {list(info.shape)}, expected {list(shape)}")


def _shape(node: Node) -> Array:
    return np.array(node.source.shape, node.output().dtype.numpy)


def _broadcast_args(node: Node) -> Array:
    first, second = node.constant(0), node.constant(1)
    if first.ndim != 1 or second.ndim != 1 or first.dtype.kind != "i" or first.dtype != second.dtype:
        raise ModelError("its inputs are not two shapes, expected vectors of int32 or int64")
    rank = max(len(first), len(second))
    rows = [np.pad(each, (rank - len(each), 0), constant_values=1) for each in (first, second)]
    if not ((rows[0] == rows[1]) | (rows[0] == 1) | (rows[1] == 1)).all():
        raise ModelError(f"the shapes {first.tolist()} and {second.tolist()} do not broadcast")
    return np.where(rows[0] == 1, rows[1], rows[0])


def _reads_stored_weights(node: Node) -> bool:
    return node.is_constant(0) or node.source.dtype is DataType.FLOAT16


FOLDS: Mapping[str, Fold] = {
    "BROADCAST_ARGS": Fold(compute=_broadcast_args, inputs=2),
    "DEQUANTIZE": Fold(
        compute=lambda node: real_values(node.source, node.constant(0)), inputs=1, applies=_reads_stored_weights
    ),
    "SHAPE": Fold(compute=_shape, inputs=1, needs_data=False),
}
"""The operators that are computed when a file is read, by name in the schema."""
