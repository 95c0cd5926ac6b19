# SPDX-License-Identifier: Apache-2.0
"""Workloads of reductions; the indices of the elements that each result combines are computed at load time."""

from __future__ import annotations

import numpy as np

from ferrule.backends.gpu_acc.parameters import ReduceParameters
from ferrule.backends.gpu_acc.workloads.launch import KernelWorkload, Launch, Loading
from ferrule.graph import DataType, LayerType
from ferrule.operators.reductions.arg_select import ArgSelectDescriptor
from ferrule.operators.reductions.reduce import ReduceDescriptor, divisor, reduced_count, rescaling

_LARGEST = frozenset({LayerType.ARG_MAX, LayerType.REDUCE_ANY, LayerType.REDUCE_MAX})


def reduction(loading: Loading) -> KernelWorkload:
    """Return the workload of REDUCE_MAX, REDUCE_MIN, REDUCE_ANY or REDUCE_ALL; false is less than true."""
    return _workload(loading, "reduce")


def place(loading: Loading) -> KernelWorkload:
    """Return the workload of ARG_MAX or ARG_MIN."""
    return _workload(loading, "place")


def total(loading: Loading) -> KernelWorkload:
    """Return the workload of MEAN or SUM."""
    return _workload(loading, "total")


def _workload(loading: Loading, kernel: str) -> KernelWorkload:
    layer, operands = loading.info.layer, loading.info.operands
    source, output, descriptor = operands.input(0), operands.output, layer.descriptor
    assert isinstance(descriptor, ArgSelectDescriptor | ReduceDescriptor)
    axes = (descriptor.axis,) if isinstance(descriptor, ArgSelectDescriptor) else descriptor.axes
    kept = [axis for axis in range(len(source.shape)) if axis not in axes]
    numbers = np.arange(source.elements, dtype=np.int32).reshape(source.shape)
    rows = numbers.transpose(*kept, *axes).reshape(output.elements, -1)
    multiplier, shift, offset, denominator = 0, 0, 0, 1
    if kernel == "total":
        assert isinstance(descriptor, ReduceDescriptor)
        denominator = divisor(layer.type, descriptor, source)
        if not source.dtype.is_float:
            multiplier, shift = rescaling(layer.type, descriptor, operands)
            offset = -source.zero_point * reduced_count(descriptor, source)
    parameters = ReduceParameters(
        elements=output.elements,
        count=rows.shape[1],
        largest=int(layer.type in _LARGEST),
        offset=offset,
        divisor=denominator,
        multiplier=multiplier,
        shift=shift,
        zero_point=0 if output.dtype is not DataType.INT8 else output.zero_point,
    )
    launch = Launch(
        kernel=f"{kernel}_{'f32' if source.dtype.is_float else 's8'}",
        parameters=parameters,
        constants=(rows[:, 0], rows[0] - rows[0, 0]),
        items=(output.elements,),
    )
    return KernelWorkload(loading, launch)
