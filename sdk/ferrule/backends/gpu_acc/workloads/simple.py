# SPDX-License-Identifier: Apache-2.0
"""Workloads of int8 layers without weights: ADD, SUB, MUL, pooling, tables, SOFTMAX and QUANTIZE; and of copies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ferrule.backends.gpu_acc.handle import GpuTensorHandle, submit
from ferrule.backends.gpu_acc.parameters import (
    PoolParameters,
    QuantizeParameters,
    SoftmaxParameters,
    TableParameters,
)
from ferrule.backends.gpu_acc.session import DeviceMemory, GpuEvent
from ferrule.backends.gpu_acc.workloads.elementwise import broadcast_parameters
from ferrule.backends.gpu_acc.workloads.launch import KernelWorkload, Launch, Loading
from ferrule.graph import DataType, LayerType
from ferrule.operators.arithmetic.fixed_point import activation_range
from ferrule.operators.elementwise.binary import BinaryDescriptor
from ferrule.operators.elementwise.stored_binary import product_of, sum_of
from ferrule.operators.operator import Operands
from ferrule.operators.reductions.softmax import SoftmaxDescriptor, exponentials
from ferrule.operators.spatial.pool2d import Pool2dDescriptor
from ferrule.operators.table import OPERATORS

if TYPE_CHECKING:
    import pyopencl as cl

_POOLS = {LayerType.AVERAGE_POOL_2D: "average_pool2d_s8", LayerType.MAX_POOL_2D: "max_pool2d_s8"}
_EXTREMA = {LayerType.MAXIMUM: "maximum_s8", LayerType.MINIMUM: "minimum_s8"}


def arithmetic(loading: Loading) -> KernelWorkload:
    """Return the workload of an ADD, SUB or MUL layer."""
    layer, operands = loading.info.layer, loading.info.operands
    descriptor = layer.descriptor
    assert isinstance(descriptor, BinaryDescriptor)
    base = broadcast_parameters(operands)
    if layer.type is LayerType.MUL:
        product = product_of(operands, descriptor.activation)
        result = product.result
        name = "product_s8"
        base = replace(base, first_offset=product.first_offset, second_offset=product.second_offset)
    else:
        total = sum_of(operands, descriptor.activation, subtract=layer.type is LayerType.SUB)
        result = total.result
        name = "sum_s8"
        base = replace(
            base,
            first_offset=total.first.offset,
            second_offset=total.second.offset,
            left_shift=total.first.left_shift,
            first_multiplier=total.first.multiplier,
            first_shift=total.first.shift,
            second_multiplier=total.second.multiplier,
            second_shift=total.second.shift,
            subtract=int(total.subtract),
        )
    parameters = replace(
        base,
        multiplier=result.multiplier,
        shift=result.shift,
        zero_point=result.zero_point,
        low=result.low,
        high=result.high,
    )
    launch = Launch(kernel=name, parameters=parameters, inputs=(0, 1), items=(base.elements,))
    return KernelWorkload(loading, launch)


def extremum(loading: Loading) -> KernelWorkload:
    """Return the workload of a MAXIMUM or MINIMUM layer."""
    parameters = broadcast_parameters(loading.info.operands)
    kernel = _EXTREMA[loading.info.layer.type]
    return KernelWorkload(
        loading, Launch(kernel=kernel, parameters=parameters, inputs=(0, 1), items=(parameters.elements,))
    )


def pool2d(loading: Loading) -> KernelWorkload:
    """Return the workload of an AVERAGE_POOL_2D or MAX_POOL_2D layer."""
    descriptor, operands = loading.info.layer.descriptor, loading.info.operands
    assert isinstance(descriptor, Pool2dDescriptor)
    image, output = operands.input(0), operands.output
    low, high = activation_range(descriptor.activation, output)
    parameters = PoolParameters(
        elements=output.elements,
        height=image.shape[1],
        width=image.shape[2],
        channels=image.shape[3],
        output_height=output.shape[1],
        output_width=output.shape[2],
        window_height=descriptor.pool_h,
        window_width=descriptor.pool_w,
        stride_h=descriptor.stride_h,
        stride_w=descriptor.stride_w,
        padding_top=descriptor.padding.top,
        padding_left=descriptor.padding.left,
        low=low,
        high=high,
    )
    launch = Launch(kernel=_POOLS[loading.info.layer.type], parameters=parameters, items=(output.elements,))
    return KernelWorkload(loading, launch)


def table(loading: Loading) -> KernelWorkload:
    """Return the workload of a layer that is a function of one 8-bit value; the numpy kernel computes its table."""
    layer, operands = loading.info.layer, loading.info.operands
    every = np.arange(-128, 128).astype(np.int8).view(operands.input(0).dtype.numpy)
    row = Operands(
        inputs=(replace(operands.input(0), shape=every.shape),), outputs=(replace(operands.output, shape=every.shape),)
    )
    (values,) = OPERATORS[layer.type].kernel(layer.descriptor, row, [every])
    elements = operands.output.elements
    launch = Launch(
        kernel="table_s8_f32" if operands.output.dtype is DataType.FLOAT32 else "table_s8",
        parameters=TableParameters(elements=elements),
        constants=(values,),
        items=(elements,),
    )
    return KernelWorkload(loading, launch)


def softmax(loading: Loading) -> KernelWorkload:
    """Return the workload of a SOFTMAX layer."""
    descriptor, source = loading.info.layer.descriptor, loading.info.operands.input(0)
    assert isinstance(descriptor, SoftmaxDescriptor)
    known = exponentials(descriptor.beta, source.scale)
    padded = np.zeros(256, np.int32)
    padded[: known.size] = known
    rows = source.elements // source.shape[-1]
    launch = Launch(
        kernel="softmax_s8",
        parameters=SoftmaxParameters(rows=rows, length=source.shape[-1]),
        constants=(padded,),
        items=(rows,),
    )
    return KernelWorkload(loading, launch)


def quantize(loading: Loading) -> KernelWorkload:
    """Return the workload of a QUANTIZE layer: a table for int8 input, a division for float32 input."""
    source, output = loading.info.operands.input(0), loading.info.operands.output
    if source.dtype is DataType.INT8:
        return table(loading)
    parameters = QuantizeParameters(
        elements=output.elements,
        scale_bits=int(np.float32(output.scale).view(np.int32)),
        zero_point=output.zero_point,
    )
    return KernelWorkload(loading, Launch(kernel="quantize_f32_s8", parameters=parameters, items=(output.elements,)))


class CopyWorkload:
    """The workload of RESHAPE, SQUEEZE and EXPAND_DIMS: copies the bytes from buffer to buffer."""

    def __init__(self, loading: Loading) -> None:
        self._session = loading.session
        self._name = f"{loading.info.layer.name} (copy)"
        self._size_bytes = loading.info.operands.output.size_bytes
        self._source = loading.source(0)
        self._target = loading.target()
        self._used = [each for each in (self._source, self._target) if isinstance(each, GpuTensorHandle)]

    def execute(self) -> GpuEvent:
        """Enqueue the copy and return the event that completes when the output is written."""
        return submit(self._session, self._command, name=self._name, handles=self._used)

    def _command(self, queue: cl.CommandQueue, waits: list[cl.Event]) -> cl.Event:
        import pyopencl as cl

        source, target = self._source, self._target.memory
        place = source.memory if isinstance(source, GpuTensorHandle) else DeviceMemory(buffer=source)
        return cl.enqueue_copy(
            queue,
            target.buffer,
            place.buffer,
            byte_count=self._size_bytes,
            src_offset=place.offset,
            dst_offset=target.offset,
            wait_for=waits,
        )
