# SPDX-License-Identifier: Apache-2.0
"""Code shared by the methods that add layers: names, inferred shapes, and checks before any change."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.errors import ModelError, place
from ferrule.graph import (
    Array,
    DataType,
    Descriptor,
    Graph,
    Kept,
    Layer,
    LayerType,
    Quantization,
    Rounding,
    TensorInfo,
    reset_value,
)
from ferrule.operators.interpreter import operator_of
from ferrule.operators.operator import Operands, Operator
from ferrule.operators.table import family, type_of

_Builder = TypeVar("_Builder", bound="LayerBuilder")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@frozen
class Constant:
    """A constant that is added to the graph together with its reader; `role` becomes part of its name."""

    role: str
    data: Array
    quantization: Quantization | None = None


Given = str | Constant | Kept | None
"""An input of a layer: the name of a tensor, what is added together with the layer, or None if it is absent."""


def adding(
    row: Operator, family: Callable[Concatenate[_Builder, Operator, _Arguments], _Result], text: str
) -> Callable[Concatenate[_Builder, _Arguments], _Result]:
    """Return the method that adds layers of an operator, made of its family's, which takes the row; with its text."""

    @wraps(family)
    def add(self: _Builder, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        return family(self, row, *arguments, **named)

    own, _, *others = inspect.signature(family).parameters.values()
    add.__signature__ = inspect.signature(family).replace(parameters=[own, *others])  # type: ignore[attr-defined]
    add.__doc__ = text
    return add


def row_of(type_: LayerType, descriptor: type[Descriptor], kind: str) -> Operator:
    """Return the row of an operator of a family, whose descriptors are of a class; ModelError lists its types."""
    rows = family(descriptor)
    if type_ not in rows:
        raise ModelError(f"{type_} is not {kind}, expected {', '.join(sorted(rows))}")
    return rows[type_]


class LayerBuilder(Graph):
    """A graph that appends layers and infers their outputs."""

    @override
    def __init_subclass__(cls) -> None:
        """Give the methods that `adding` makes their names."""
        for name, member in vars(cls).items():
            if hasattr(member, "__wrapped__"):
                member.__name__, member.__qualname__ = name, f"{cls.__qualname__}.{name}"

    def add_constant_array(self, name: str, data: Array, quantization: Quantization | None = None) -> str:
        """Add a constant with the shape and type of an array and return its name, by which layers can read it."""
        info = TensorInfo(name, data.shape, _data_type(name, data), quantization=quantization)
        return self.add_constant(info, data)

    def _append(
        self,
        descriptor: Descriptor,
        inputs: Sequence[Given],
        *,
        name: str | None,
        row: Operator | None = None,
        quantization: Quantization | Sequence[Quantization | None] | None = None,
        dtype: DataType | Sequence[DataType] | None = None,
        outputs: int = 1,
        rounding: Rounding = Rounding.TFLM,
    ) -> tuple[str, ...]:
        """Add a layer and return the names of its outputs: the layer's name, numbered if there are several outputs.

        `row` is the operator, for descriptors that several have. `quantization` and `dtype` are those of the outputs,
        or of each; the type defaults to that of the first input. States have further outputs. If a check fails, nothing
        is added.
        """
        type_ = type_of(descriptor) if row is None else row.type
        layer_name = name or self.unique_name(f"{type_.lower()}_{len(self._layers)}")
        with place(f"layer '{layer_name}' {type_}"):
            infos = tuple(self._described(layer_name, source) for source in inputs)
            given = Operands(infos, rounding=rounding)
            operator = operator_of(type_)
            shapes = operator.infer(descriptor, infos)
            names = (layer_name,) if outputs == 1 else tuple(f"{layer_name}_{index}" for index in range(outputs))
            if dtype is None or isinstance(dtype, DataType):
                dtype = [dtype or given.source.dtype] * outputs
            if quantization is None or isinstance(quantization, Quantization):
                quantization = [quantization] * outputs
            results = [TensorInfo(*each) for each in zip(names, shapes[: len(names)], dtype, quantization, strict=True)]
            kept = [
                info
                for source, info in zip(inputs, infos, strict=True)
                if isinstance(source, Kept) and info is not None
            ]
            results += [replace(info, name=self.unique_name(f"{info.name}_next")) for info in kept]
            operands = replace(given, outputs=tuple(results))
            operator.accept(descriptor, operands)
            operator.check_values(descriptor, operands, [self._data(source) for source in inputs])
            layer = Layer(
                layer_name,
                type_,
                descriptor,
                inputs=tuple(None if info is None else info.name for info in infos),
                outputs=tuple(info.name for info in results),
                rounding=rounding,
            )
            self._refuse_taken(layer)
            for source, info in zip(inputs, infos, strict=True):
                if isinstance(source, Constant) and info is not None:
                    self.add_constant(info, source.data)
                elif isinstance(source, Kept) and info is not None:
                    self.add_state(info, reset_value(info))
            self.add_layer(layer, results)
            for info, result in zip(kept, results[len(names) :], strict=True):
                self.set_state(info.name, result.name)
            return names

    def _append_like(
        self,
        source: str,
        descriptor: Descriptor,
        *others: str | Constant,
        name: str | None,
        row: Operator | None = None,
    ) -> str:
        """Add a layer that reads `source` and `others`, whose output has the type and quantisation of `source`."""
        info = self.info(source)
        inputs = [source, *others]
        return self._append(descriptor, inputs, name=name, row=row, quantization=info.quantization, dtype=info.dtype)[0]

    def _append_parts(self, source: str, descriptor: Descriptor, count: int, name: str | None) -> tuple[str, ...]:
        """Add a layer that divides `source` into parts, which have its type and quantisation."""
        quantization = self.info(source).quantization
        return self._append(descriptor, [source], name=name, quantization=quantization, outputs=count)

    def _axis(self, source: str, axis: int, *, more: int = 0) -> int:
        """Return an axis of a tensor, or of one with more axes, counted from the front; ModelError unless it exists."""
        return front_axis(axis, len(self.info(source).shape) + more)

    def _described(self, layer: str, source: Given) -> TensorInfo | None:
        if source is None:
            return None
        if isinstance(source, str):
            return self.info(source)
        name = self.unique_name(f"{layer}_{source.role}")
        if isinstance(source, Kept):
            return source.info(name)
        dtype = _data_type(name, source.data)
        return TensorInfo(name, source.data.shape, dtype, quantization=source.quantization)

    def _data(self, source: Given) -> Array | None:
        """Return the data of an input that is a constant."""
        if isinstance(source, str):
            return self.tensor(source).data
        return source.data if isinstance(source, Constant) else None

    def _refuse_taken(self, layer: Layer) -> None:
        """Raise the errors of `add_layer` for taken names, before any constant is added."""
        if layer.name in self._layers:
            raise ModelError("there is a layer of that name already, expected a new name")
        for output in layer.outputs:
            if output in self._tensors:
                raise ModelError(f"there is a tensor '{output}' already, expected a new name")


def bias_quantization(source: TensorInfo, weights: Quantization | None) -> Quantization | None:
    """Return the quantisation that TensorFlow Lite prescribes for a bias: input scale times weight scales."""
    if source.quantization is None or weights is None:
        return None
    products = np.float32(source.quantization.scale) * np.array(weights.scales, np.float32)
    return Quantization(scales=tuple(products.tolist()), zero_points=(0,) * len(weights.scales), axis=0)


def sides(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first and the second numbers of (before, after) pairs."""
    return tuple(before for before, _ in pairs), tuple(after for _, after in pairs)


def front_axes(values: Sequence[int], info: TensorInfo) -> tuple[int, ...]:
    """Return axes of a tensor counted from the front, ascending; ModelError unless all exist."""
    return tuple(sorted({front_axis(axis, len(info.shape)) for axis in values}))


def front_axis(value: int, rank: int) -> int:
    """Return an axis counted from the front; ModelError unless it is within `rank` axes."""
    if not -rank <= value < rank:
        raise ModelError(f"axis {value} does not exist, expected {-rank} to {rank - 1}")
    return value % rank


def _data_type(name: str, data: Array) -> DataType:
    try:
        return DataType(str(data.dtype))
    except ValueError:
        raise ModelError(f"constant '{name}' is {data.dtype}, expected one of {', '.join(DataType)}") from None
