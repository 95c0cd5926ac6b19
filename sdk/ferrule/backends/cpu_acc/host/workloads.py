# SPDX-License-Identifier: Apache-2.0
"""CpuAcc's workloads on the host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.backends.cpu_acc.host.calls import SCRATCH, Calls
from ferrule.backends.cpu_acc.host.control_flow import ControlFlowWorkload
from ferrule.backends.cpu_acc.host.instruction_set import choose
from ferrule.backends.cpu_acc.host.library import HostLibrary, host_library
from ferrule.backends.cpu_acc.host.lowering.call import POOL, Host, pieces_of
from ferrule.backends.cpu_acc.host.lowering.table import HOST_LOWERINGS
from ferrule.backends.cpu_acc.host.options import HostOptions
from ferrule.backends.cpu_acc.host.sequence import CallList, Place, SequenceWorkload
from ferrule.backends.cpu_acc.lowering.kernels.convolution import from_run_time
from ferrule.backends.cpu_acc.lowering.operators.control_flow import CONTROL_FLOW
from ferrule.backends.cpu_acc.lowering.table import lowering_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.shared.host_memory import address, aligned_empty, layer_alone
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.dom import Identifier
from ferrule.graph import Array, DataType


@dataclass(slots=True, eq=False)
class KernelWorkload:
    """Runs the kernel calls of one lowered layer on the memory of its tensor handles."""

    kernel: str
    calls: Calls
    handles: dict[str, TensorHandle]
    """By the names of the layer's tensors."""
    outputs: tuple[str, ...]
    scratch: Scratch | None
    _arrays: dict[str, Array] = field(default_factory=dict)

    def execute(self) -> None:
        """Run the kernels; the interpreter lock is released while they run."""
        for name, handle in self.handles.items():
            array = handle.map()
            if array is not self._arrays.get(name):
                if not array.flags.c_contiguous:
                    raise ValueError(f"tensor '{name}' is not contiguous")
                self.calls.bind(name, address(array))
                self._arrays[name] = array
        if self.scratch is not None:
            self.calls.bind(SCRATCH, self.scratch.address())
        for function, arguments in self.calls.calls:
            function(*arguments)
        for handle in self.handles.values():
            handle.unmap()

    def add_to(self, calls: CallList) -> None:
        """Add the calls to those of a sequence."""
        first = len(calls.calls)
        lists = {id(arguments): first + index for index, (_, arguments) in enumerate(self.calls.calls)}
        for function, arguments in self.calls.calls:
            calls.add(function, arguments)

        def places(name: str) -> list[Place]:
            return [(lists[id(arguments)], index) for arguments, index in self.calls.places(name)]

        for name, handle in self.handles.items():
            calls.uses(handle, places(name))
        calls.written.update(id(self.handles[name]) for name in self.outputs)
        if self.scratch is not None:
            calls.scratch += places(SCRATCH)
            calls.memory = self.scratch
        calls.keep.append(self.calls)


@frozen(eq=False, kw_only=False)
class ViewWorkload:
    """Copies a tensor's elements to a tensor of another shape; the generated C would share the storage instead."""

    source: TensorHandle
    target: TensorHandle

    def add_to(self, calls: CallList) -> None:
        """Add the copy to the calls of a sequence."""
        library = calls.library
        params = library.ffi.new("struct ferrule_host_copy_params *", {"bytes": self.source.info.size_bytes})
        index = calls.add(library.functions.ferrule_host_copy, [params, None, None])
        calls.uses(self.source, [(index, 1)])
        calls.uses(self.target, [(index, 2)])
        calls.written.add(id(self.target))
        calls.keep.append(params)

    def execute(self) -> None:
        """Copy the elements."""
        target = self.target.map()
        np.copyto(target, self.source.map().reshape(target.shape), casting="no")
        self.target.unmap()
        self.source.unmap()


class Scratch:
    """Scratch memory that the workloads of one network use in turn; it is allocated at the first run."""

    def __init__(self) -> None:
        self._size_bytes = 0
        self._array: Array | None = None

    def require(self, size_bytes: int) -> None:
        """Request at least `size_bytes`; all requests must come before the first use."""
        if self._array is not None:
            raise RuntimeError("a workload is made after the first run")
        self._size_bytes = max(self._size_bytes, size_bytes)

    def address(self) -> int:
        """Return the address of the memory, which is aligned to a cache line."""
        if self._array is None:
            self._array = aligned_empty((self._size_bytes,), DataType.UINT8)
        return address(self._array)


class CpuAccWorkloadFactory(WorkloadFactory):
    """Makes a workload for every layer that CpuAcc can lower; workloads of one factory must run one at a time."""

    def __init__(self, options: HostOptions | None = None, *, library: HostLibrary | None = None) -> None:
        """Use the kernels of `library`; the default is the library of this host."""
        chosen = options or HostOptions()
        self._library = library or host_library()
        instructions = choose(self._library, chosen.instructions)
        self._host = None if instructions is None else Host(instructions=instructions, threads=chosen.threads)
        self._threads = chosen.threads
        self._scratch = Scratch()
        self._pool: object = None

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        if info.layer.type in CONTROL_FLOW:
            return ControlFlowWorkload(info, self.create_workload)
        handles = _handles_of(info)
        names = {name: f"tensor_{index}" for index, name in enumerate(handles)}
        op = _lower(info, names, self._host)
        if op.view_of is not None:
            return ViewWorkload(handles[op.view_of], info.outputs[0])
        scratch = None
        if op.scratch_bytes:
            scratch = self._scratch
            scratch.require(op.scratch_bytes)
        symbols = {POOL.name: self._threads_for(op)}
        return KernelWorkload(op.kernel, Calls(op, self._library, names, symbols), handles, info.layer.outputs, scratch)

    @override
    def join(self, workloads: Sequence[Workload]) -> Workload | None:
        if any(isinstance(workload, ControlFlowWorkload) for workload in workloads):
            return None
        if any(isinstance(workload, KernelWorkload) and workload.calls.has_tables for workload in workloads):
            return None
        calls = CallList(self._library)
        for workload in workloads:
            assert isinstance(workload, KernelWorkload | ViewWorkload), "the factory makes no others"
            workload.add_to(calls)
        return SequenceWorkload(calls)

    def _threads_for(self, op: LoweredOp) -> object:
        """Return the pool if the work is shared, otherwise the null pointer; threads end with the last workload."""
        if pieces_of(op) == 1:
            return self._library.ffi.NULL
        if self._pool is None:
            functions = self._library.functions
            pool = functions.ferrule_pool_create(self._threads)
            if pool == self._library.ffi.NULL:
                raise MemoryError("there is no memory for threads")
            self._pool = self._library.ffi.gc(pool, functions.ferrule_pool_destroy)
        return self._pool


def _lower(info: WorkloadInfo, names: dict[str, str], host: Host | None) -> LoweredOp:
    layer = info.layer
    lowering = lowering_of(layer)
    context = LoweringContext(
        graph=layer_alone(info).graph,
        layer=layer,
        target=info.target,
        prefix="layer",
        pointers={name: Identifier(identifier) for name, identifier in names.items()},
        scratch=Identifier(SCRATCH),
    )
    own = HOST_LOWERINGS.get(layer.type)
    if own is not None and host is not None and not from_run_time(context):
        op = own(context, host)
        if op is not None:
            return op
    return lowering(context)


def _handles_of(info: WorkloadInfo) -> dict[str, TensorHandle]:
    """Return the handles by tensor name."""
    layer = info.layer
    inputs = zip(layer.inputs, info.inputs, strict=True)
    handles = {name: handle for name, handle in inputs if name is not None and handle is not None}
    return handles | dict(zip(layer.outputs, info.outputs, strict=True))
