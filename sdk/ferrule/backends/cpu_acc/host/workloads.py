# SPDX-License-Identifier: Apache-2.0
"""CpuAcc's workloads on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferrule._typing import override
from ferrule.backends.cpu_acc.host.calls import SCRATCH, Calls
from ferrule.backends.cpu_acc.host.control_flow import ControlFlowWorkload
from ferrule.backends.cpu_acc.host.instruction_set import choose
from ferrule.backends.cpu_acc.host.library import HOST, HostLibrary, host_library
from ferrule.backends.cpu_acc.host.lowering.call import HEADER, POOL, Host, pieces_of
from ferrule.backends.cpu_acc.host.lowering.table import HOST_LOWERINGS
from ferrule.backends.cpu_acc.host.options import HostOptions
from ferrule.backends.cpu_acc.host.sequence import KernelWorkload, Part, Scratch
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall
from ferrule.backends.cpu_acc.lowering.kernels.convolution import from_run_time
from ferrule.backends.cpu_acc.lowering.kernels.equivalent import equivalent
from ferrule.backends.cpu_acc.lowering.operators.control_flow import CONTROL_FLOW
from ferrule.backends.cpu_acc.lowering.table import lowering_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.backends.shared.host_memory import layer_alone
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.dom import Identifier


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
        if op.scratch_bytes:
            self._scratch.require(op.scratch_bytes)
        calls = Calls(op, self._library, names, {POOL.name: self._threads_for(op)})
        part = Part(kernel=op.kernel, calls=calls, handles=handles, outputs=info.layer.outputs, scratch=self._scratch)
        return KernelWorkload(self._library, (part,))

    @override
    def join(self, workloads: Sequence[Workload]) -> Workload | None:
        parts: list[Part] = []
        for workload in workloads:
            if not isinstance(workload, KernelWorkload) or any(workload.parts[0].calls.members.values()):
                return None
            parts += workload.parts
        return KernelWorkload(self._library, parts)

    @override
    def native_call(self, workload: Workload) -> Callable[[], object] | None:
        return workload.native_call() if isinstance(workload, KernelWorkload) else None

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
    context = equivalent(
        LoweringContext(
            graph=layer_alone(info).graph,
            layer=layer,
            target=info.target,
            prefix="layer",
            pointers={name: Identifier(identifier) for name, identifier in names.items()},
            scratch=Identifier(SCRATCH),
        )
    )
    own = HOST_LOWERINGS.get(context.layer.type)
    if own is not None and host is not None and not from_run_time(context):
        op = own(context, host)
        if op is not None:
            return op
    op = lowering(context)
    if op.view_of is None:
        return op
    fields = {"bytes": info.operands.output.size_bytes}
    return KernelCall("host_copy", HEADER, fields, contribution=HOST).lowered(context)


def _handles_of(info: WorkloadInfo) -> dict[str, TensorHandle]:
    """Return the handles by tensor name."""
    layer = info.layer
    inputs = zip(layer.inputs, info.inputs, strict=True)
    handles = {name: handle for name, handle in inputs if name is not None and handle is not None}
    return handles | dict(zip(layer.outputs, info.outputs, strict=True))
