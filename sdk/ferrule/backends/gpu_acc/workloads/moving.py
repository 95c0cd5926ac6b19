# SPDX-License-Identifier: Apache-2.0
"""Launches for layers that only move elements.

The numpy kernel moves the numbers of the elements when the layer is loaded, unless indices may be computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ferrule.backends.gpu_acc.parameters import parameters
from ferrule.backends.gpu_acc.workloads.launch import Launch, Loading
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.operators.arithmetic.broadcast import MAX_AXES
from ferrule.operators.movement.gather import gathering
from ferrule.operators.operator import Operands
from ferrule.operators.table import OPERATORS


def gather(loading: Loading) -> Launch:
    """Return the launch for GATHER, GATHER_ND or EMBEDDING_LOOKUP, whose indices may be computed."""
    layer, operands = loading.layer, loading.operands
    data, output = 1 - OPERATORS[layer.type].indices[0], operands.output
    way = gathering(layer.descriptor, operands.input(data), operands.input(1 - data))
    unused = (0,) * (MAX_AXES - len(way.extents))
    packed = parameters(
        "gather_parameters",
        items=output.elements,
        run=way.run,
        count=way.count,
        outer=way.outer,
        block=math.prod(way.extents) * way.run,
        depth=len(way.extents),
        extents=way.extents + unused,
        strides=way.strides + unused,
    )
    kernel = f"gather_{8 * output.dtype.size_bytes}"
    return Launch(kernel=kernel, parameters=packed, inputs=(data, 1 - data))


def move(loading: Loading) -> list[Launch]:
    """Return the launches for a layer that moves elements: one for each input of each output."""
    operands = loading.operands
    indices = OPERATORS[loading.layer.type].indices
    moved = [index for index in range(len(operands.inputs)) if index not in indices]
    ends = np.cumsum([operands.input(index).elements for index in moved]).tolist()
    fills = _fills(loading, moved)
    launches = []
    for position, places in enumerate(_places(loading, moved, ends)):
        bits = 8 * operands.outputs[position].dtype.size_bytes
        fill = _fill(fills[position], places)
        for index, end in zip(moved, ends, strict=True):
            count = operands.input(index).elements
            packed = parameters(
                "move_parameters",
                items=places.size,
                first=end - count + 1,
                count=count,
                fills=int(index == moved[0]),
                fill_low=int(fill[0]),
                fill_high=int(fill[1]),
            )
            launches.append(
                Launch(kernel=f"move_{bits}", parameters=packed, constants=(places,), inputs=(index,), output=position)
            )
    return launches


def _places(loading: Loading, moved: Sequence[int], ends: Sequence[int]) -> list[Array]:
    """Return for each element of each output the number of its input element, counted from 1; 0 for the fill."""
    operands = loading.operands
    numbers = [
        np.arange(end - operands.input(index).elements, end).reshape(operands.input(index).shape) + 1
        for index, end in zip(moved, ends, strict=True)
    ]
    wide = Operands(
        tuple(
            _wide(info) if index in moved and info is not None else info for index, info in enumerate(operands.inputs)
        ),
        tuple(_wide(info) for info in operands.outputs),
    )
    # A fill has the same value in both runs, a moved number has not.
    positive = _run(loading, wide, dict(zip(moved, numbers, strict=True)))
    negative = _run(loading, wide, dict(zip(moved, (-each for each in numbers), strict=True)))
    return [
        np.where(one == -other, one, 0).astype(np.int32).reshape(-1)
        for one, other in zip(positive, negative, strict=True)
    ]


def _fills(loading: Loading, moved: Sequence[int]) -> list[Array]:
    """Return the outputs for inputs of zeros."""
    operands = loading.operands
    zeros = {index: np.zeros(operands.input(index).shape, operands.input(index).dtype.numpy) for index in moved}
    return _run(loading, operands, zeros)


def _fill(output: Array, places: Array) -> Array:
    """Return the value of the elements that have no place, as two int32."""
    value = output.reshape(-1)[places == 0][:1]
    padded = np.zeros(8, np.uint8)
    padded[: value.nbytes] = value.view(np.uint8)
    return padded.view("<i4")


def _run(loading: Loading, operands: Operands, arrays: Mapping[int, Array]) -> list[Array]:
    layer = loading.layer
    given = [arrays[index] if index in arrays else loading.data(index) for index in range(len(operands.inputs))]
    return OPERATORS[layer.type].kernel(layer.descriptor, operands, given)


def _wide(info: TensorInfo) -> TensorInfo:
    return replace(info, dtype=DataType.INT64, quantization=None)
