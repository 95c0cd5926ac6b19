# SPDX-License-Identifier: Apache-2.0
"""Workloads that launch kernels, with arguments and a size, or copy bytes; and the handles that they read and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.gpu_acc.handle import GpuTensorHandle, submit
from ferrule.backends.gpu_acc.opencl import WORK_GROUP, OpenClDevice
from ferrule.backends.gpu_acc.parameters import ITEMS
from ferrule.backends.gpu_acc.program import kernel
from ferrule.backends.gpu_acc.session import DeviceMemory, GpuEvent, Session
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array

if TYPE_CHECKING:
    import pyopencl as cl

ELEMENTS_GROUP = (WORK_GROUP,)
"""Work-group size of kernels with one work item per element."""
CHANNELS_GROUP = (4, WORK_GROUP // 4)
"""Work-group size of kernels over blocks of channels (first) and pixels."""
CHANNELS_PER_ITEM = 8
"""Output channels that a work item of a convolution computes: the length of the vectors in its kernels."""

STARTS = 4
"""Length of a kernel's last argument, the offsets of its tensors' first bytes in their buffers: inputs, output."""
OUTPUT_START = STARTS - 1


@frozen(eq=False)
class Launch:
    """A kernel, its size and its arguments: parameters, constants, at most three inputs, one output, and starts."""

    kernel: str
    parameters: Array
    """Those that `ferrule.backends.gpu_acc.parameters.parameters` returns."""
    constants: tuple[Array, ...] = ()
    inputs: tuple[int, ...] = (0,)
    """Positions of the layer's inputs that the kernel reads."""
    output: int = 0
    """Position of the layer's output that the kernel writes."""
    items: tuple[int, ...] = ()
    """Required work items per dimension, by default those of `parameters`; they are rounded up to work-groups."""
    group: tuple[int, ...] = ELEMENTS_GROUP


class Loading:
    """Prepares the workload of one layer and copies the layer's constants into buffers."""

    def __init__(self, info: WorkloadInfo, session: Session) -> None:
        self.info = info
        self.layer = info.layer
        self.operands = info.operands
        self.session = session
        session.check_instance(info.target.device.name)
        self._constants: dict[int, tuple[Array, cl.Buffer]] = {}

    def constant(self, array: Array) -> cl.Buffer:
        """Return a buffer with a copy of an array, the same one for the same array."""
        import pyopencl as cl

        if id(array) not in self._constants:
            flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
            buffer = cl.Buffer(self.session.context, flags, hostbuf=np.ascontiguousarray(array).reshape(-1))
            self._constants[id(array)] = array, buffer  # the array stays, so that no other one gets its id
        return self._constants[id(array)][1]

    def source(self, index: int) -> cl.Buffer | GpuTensorHandle:
        """Return the handle of an input, or a buffer with its data if the input is a constant."""
        handle, tensor = self.info.inputs[index], self.info.constants[index]
        if tensor is not None and tensor.data is not None:
            return self.constant(tensor.data)
        return self._own(handle)

    def target(self, index: int = 0) -> GpuTensorHandle:
        """Return the handle of an output."""
        handle = self._own(self.info.outputs[index])
        handle.set_written_by_device()
        return handle

    def data(self, index: int) -> Array | None:
        """Return the data of a constant input, None if it is absent; UnsupportedError if it is computed at run time."""
        if index >= len(self.info.constants):
            return None
        tensor = self.info.constants[index]
        if tensor is None and self.info.inputs[index] is not None:
            raise UnsupportedError(f"input {index} of layer '{self.layer.name}' is no constant")
        return None if tensor is None else tensor.data

    def _own(self, handle: object) -> GpuTensorHandle:
        if not isinstance(handle, GpuTensorHandle):
            raise UnsupportedError(
                f"layer '{self.layer.name}' got a tensor as {type(handle).__name__}, GpuAcc needs its own handles"
            )
        return handle


class _BoundKernel:
    """A kernel with its arguments; the buffers of handles are set again if they change."""

    def __init__(self, loading: Loading, launch: Launch) -> None:
        self._kernel = kernel(loading.session.device, launch.kernel)
        self._group = launch.group
        items = launch.items or (int(launch.parameters[ITEMS]),)
        self._size = tuple(-(-n // group) * group for n, group in zip(items, launch.group, strict=True))
        fixed = [loading.constant(each) for each in (launch.parameters, *launch.constants)]
        tensors = [*map(loading.source, launch.inputs), loading.target(launch.output)]
        starts = (*range(len(launch.inputs)), OUTPUT_START)
        self._handles: list[tuple[int, int, GpuTensorHandle]] = []
        self._bound: dict[int, object] = {}  # a kernel does not keep its arguments alive
        self._starts = np.zeros(STARTS, np.uint64)
        for place, argument in enumerate((*fixed, *tensors)):
            if isinstance(argument, GpuTensorHandle):
                self._handles.append((place, starts[place - len(fixed)], argument))
            else:
                self._kernel.set_arg(place, argument)
                self._bound[place] = argument
        self._count = len(fixed) + len(tensors)
        self._kernel.set_arg(self._count, self._starts)
        self.used = [handle for _, _, handle in self._handles]
        compile_ahead(loading.session.device, launch, self._count)

    def bind(self) -> None:
        """Set the places of the tensors as they are now."""
        moved = False
        for place, start, handle in self._handles:
            memory = handle.memory
            if memory is not self._bound.get(place):
                self._kernel.set_arg(place, memory.buffer)
                self._starts[start] = memory.offset
                self._bound[place] = memory
                moved = True
        if moved:
            self._kernel.set_arg(self._count, self._starts)

    def enqueue(self, queue: cl.CommandQueue, waits: list[cl.Event]) -> cl.Event:
        """Enqueue the kernel and return its event."""
        import pyopencl as cl

        return cl.enqueue_nd_range_kernel(queue, self._kernel, self._size, self._group, wait_for=waits)


class KernelWorkload:
    """Launches one or more kernels, one after the other; `execute` returns before they have run."""

    def __init__(self, loading: Loading, launches: Sequence[Launch]) -> None:
        self._session = loading.session
        self._name = f"{loading.layer.name} ({launches[0].kernel})"
        self._kernels = [_BoundKernel(loading, launch) for launch in launches]
        self._used = list({id(handle): handle for each in self._kernels for handle in each.used}.values())

    def execute(self) -> GpuEvent:
        """Enqueue the kernels and return the event that completes when all outputs are written."""
        for each in self._kernels:
            each.bind()
        return submit(self._session, self._command, name=self._name, handles=self._used)

    def _command(self, queue: cl.CommandQueue, waits: list[cl.Event]) -> cl.Event:
        first, *others = self._kernels
        event = first.enqueue(queue, waits)
        for each in others:  # the queue is in order
            event = each.enqueue(queue, [])
        return event


_COMPILED: set[tuple[int, str]] = set()


def compile_ahead(device: OpenClDevice, launch: Launch, arguments: int) -> None:
    """Launch a kernel without work, once per process, since PoCL compiles at the first launch, which is slow."""
    import pyopencl as cl

    key = (device.number, launch.kernel)
    if key in _COMPILED:
        return
    nothing = np.zeros(256, np.uint8)  # larger than any struct of parameters: no work item has work
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    fresh = kernel(device, launch.kernel)
    # a kernel does not keep its arguments alive
    buffers = [cl.Buffer(device.context, flags, hostbuf=nothing) for _ in range(arguments)]
    for place, buffer in enumerate(buffers):
        fresh.set_arg(place, buffer)
    fresh.set_arg(arguments, np.zeros(STARTS, np.uint64))
    queue = cl.CommandQueue(device.context, device.device)
    cl.enqueue_nd_range_kernel(queue, fresh, launch.group, launch.group).wait()
    _COMPILED.add(key)


class CopyWorkload:
    """The workload of RESHAPE, SQUEEZE and EXPAND_DIMS: copies the bytes from buffer to buffer."""

    def __init__(self, loading: Loading) -> None:
        self._session = loading.session
        self._name = f"{loading.layer.name} (copy)"
        self._size_bytes = loading.operands.output.size_bytes
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
