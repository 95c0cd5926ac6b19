# SPDX-License-Identifier: Apache-2.0
"""EthosU on the host: the functional model executes the streams on arrays."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.backends.ethos_u.compiled import CompiledStream
from ferrule.backends.ethos_u.compiler import compile_part
from ferrule.backends.ethos_u.instance import StreamInstance
from ferrule.backends.ethos_u.program import EthosUProgram
from ferrule.backends.ethos_u.settings import settings_of, timeout_s
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.shared.host_memory import layer_alone
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import LayerType


class EthosUWorkload:
    """One pre-compiled layer on the functional model."""

    def __init__(self, stream: CompiledStream, info: WorkloadInfo) -> None:
        self._instance = StreamInstance(stream)
        self._info = info

    def execute(self) -> None:
        """Execute the stream on the contents of the input handles."""
        inputs = [handle for handle in self._info.inputs if handle is not None]
        self._instance.run([each.map() for each in inputs], [each.map() for each in self._info.outputs])
        for handle in (*inputs, *self._info.outputs):
            handle.unmap()


class EthosUWorkloadFactory(WorkloadFactory):
    """Makes the workloads of the layers that EthosU has compiled; it compiles others as streams of their own."""

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        descriptor = info.layer.descriptor
        if info.layer.type is not LayerType.PRE_COMPILED:
            return EthosUWorkload(_compiled(info).stream, info)
        payload = descriptor.payload if isinstance(descriptor, PreCompiledDescriptor) else None
        if not isinstance(payload, EthosUProgram):
            raise UnsupportedError(f"layer '{info.layer.name}' was compiled by another backend than EthosU")
        return EthosUWorkload(payload.stream, info)


def _compiled(info: WorkloadInfo) -> EthosUProgram:
    """Return a layer as a stream; UnsupportedError if Vela does not compile it."""
    view, layer = layer_alone(info), info.layer
    answer = compile_part(view, settings_of(info.target), limit_s=timeout_s(info.target.options))
    if not isinstance(answer, EthosUProgram):
        raise UnsupportedError(f"layer '{layer.name}': {answer[layer.name]}")
    return answer
