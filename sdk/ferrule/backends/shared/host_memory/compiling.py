# SPDX-License-Identifier: Apache-2.0
"""The host face of backends that compile: a simulator runs their programs on arrays of the process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from ferrule._typing import override
from ferrule.backends.optimization_views import ModelOptions, PreCompiledDescriptor
from ferrule.backends.shared.host_memory.backend import HostMemoryBackend
from ferrule.backends.tensor_handle import MemoryManager, TensorHandle
from ferrule.backends.workload import Workload, WorkloadFactory, WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Layer, SubgraphView, Tensor
from ferrule.graph.assembly import assemble


class CompilingBackend(HostMemoryBackend):
    """A backend whose `optimize_subgraph` answers with PRE_COMPILED layers, whose programs a simulator runs.

    It needs no code for other layers: one that the optimizer has not offered is compiled alone.
    """

    program: ClassVar[type]
    """The type of the programs, the payloads of the layers."""

    @abstractmethod
    def run_program(self, program: Any, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:  # noqa: ANN401
        """Run a program of the type `program` on the inputs of its layer, and write all elements of the outputs.

        The arrays are in the order of the layer's inputs and outputs. Other threads may run programs at the same time.
        """

    def loaded(self, program: Any) -> Callable[[Sequence[Array], Sequence[Array]], None]:  # noqa: ANN401
        """Return the function that a loaded network runs a program by, such as one that keeps what it prepares.

        One thread at a time calls it; it works as `run_program`.
        """
        return partial(self.run_program, program)

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        return _Programs(self)


@dataclass(eq=False)
class _Programs(WorkloadFactory):
    """Makes the workloads of one loaded network."""

    _backend: CompilingBackend

    @override
    def create_workload(self, info: WorkloadInfo) -> Workload:
        layer = info.layer
        if not isinstance(layer.descriptor, PreCompiledDescriptor):
            layer = self._compiled(info)
        descriptor = layer.descriptor
        program = descriptor.payload if isinstance(descriptor, PreCompiledDescriptor) else None
        if not isinstance(program, self._backend.program):
            raise UnsupportedError(f"layer '{layer.name}' was compiled by another backend than {self._backend.id}")
        handles = {
            name: handle
            for name, handle in zip(info.layer.inputs, info.inputs, strict=True)
            if name is not None and handle is not None
        }
        handles |= dict(zip(info.layer.outputs, info.outputs, strict=True))
        inputs = [handles[name] for name in layer.present_inputs]
        return _ProgramWorkload(self._backend.loaded(program), inputs, [handles[name] for name in layer.outputs])

    def _compiled(self, info: WorkloadInfo) -> Layer:
        """Return the layer that replaces one which is compiled alone."""
        view = layer_alone(info)
        views = self._backend.optimize_subgraph(view, info.target)
        layers = [layer for each in views.substitutions for layer in each.layers]
        if len(layers) != 1 or views.substitutions[0].replaced.names != view.names:
            reason = views.reasons.get(info.layer.name, "it has no program of its own")
            raise UnsupportedError(f"layer '{info.layer.name}': {self._backend.id} does not compile it: {reason}")
        return layers[0]


@dataclass(slots=True, eq=False)
class _ProgramWorkload:
    """One program with the memory of its tensors."""

    _run: Callable[[Sequence[Array], Sequence[Array]], None]
    _inputs: Sequence[TensorHandle]
    _outputs: Sequence[TensorHandle]

    def execute(self) -> None:
        """Run the program on the memory of its tensors."""
        handles = (*self._inputs, *self._outputs)
        arrays = [handle.map() for handle in handles]
        try:
            count = len(self._inputs)
            self._run(arrays[:count], arrays[count:])
        finally:
            for handle in handles:
                handle.unmap()


def layer_alone(info: WorkloadInfo) -> SubgraphView:
    """Return the subgraph of a layer alone, in a graph of its own, with its constants."""
    layer = info.layer
    given = zip(layer.inputs, info.operands.inputs, info.constants, strict=True)
    tensors = {name: constant or Tensor(found) for name, found, constant in given if name and found}
    tensors |= {found.name: Tensor(found) for found in info.operands.outputs}
    inputs = dict.fromkeys(name for name in layer.present_inputs if not tensors[name].is_constant)
    graph = assemble(layer.name, inputs=list(inputs), outputs=layer.outputs, layers=(layer,), tensors=tensors)
    return SubgraphView.of(graph, [layer.name])
