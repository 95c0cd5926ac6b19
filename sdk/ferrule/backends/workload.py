# SPDX-License-Identifier: Apache-2.0
"""Workloads: layers prepared to run on the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol, Self

from ferrule._frozen import frozen
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.graph import Graph, Layer, Tensor
from ferrule.operators.operator import Operands


class Workload(Protocol):
    """One prepared layer of a loaded network; it keeps the tensor handles with which it was created."""

    def execute(self) -> Event | None:
        """Run the layer on the current contents of its input handles, and write its output handles only.

        Returns None after the outputs are written, or an event that completes when they are. Only a backend with the
        capability ASYNC_EXECUTION may return an event; its workloads on one device then take effect in the order in
        which they were started. Raises an exception if the layer fails.
        """
        ...


@frozen(eq=False)
class WorkloadInfo:
    """The description of a layer from which a factory makes a workload."""

    layer: Layer
    operands: Operands
    inputs: tuple[TensorHandle | None, ...]
    """One handle per input of the layer; None if the input is absent or a constant."""
    constants: tuple[Tensor | None, ...]
    """One tensor per input of the layer; None if the input is not a constant."""
    outputs: tuple[TensorHandle, ...]
    target: Target
    """The device instance that the layer is assigned to, and the user's options for the backend."""

    @classmethod
    def of(cls, graph: Graph, layer: Layer, handle_of: Callable[[str], TensorHandle], target: Target) -> Self:
        """Return the information on a layer of a graph; `handle_of` returns the handle of a tensor by its name.

        It is called for the outputs and for the inputs that are computed.
        """
        tensors = [None if name is None else graph.tensor(name) for name in layer.inputs]
        return cls(
            layer=layer,
            operands=Operands.of(graph, layer),
            inputs=tuple(None if each is None or each.is_constant else handle_of(each.info.name) for each in tensors),
            constants=tuple(each if each is not None and each.is_constant else None for each in tensors),
            outputs=tuple(handle_of(name) for name in layer.outputs),
            target=target,
        )


class WorkloadFactory(ABC):
    """Makes the workloads of one backend in one loaded network."""

    @abstractmethod
    def create_workload(self, info: WorkloadInfo) -> Workload:
        """Return a workload that is ready to run; weights, programs and the like are prepared here, once.

        Raises:
            UnsupportedError: the backend does not support such a layer; its layer support refuses it, too.
        """

    def create_fallback_import(self, info: WorkloadInfo) -> Workload:
        """Return the workload of a FALLBACK_IMPORT layer whose input the backend writes.

        Its `execute` returns after the input is written, so that other backends may read the imported memory. By
        default, it waits for the event of the workload that writes the input; without an event, it does nothing.
        """
        (source,) = info.inputs
        assert source is not None, "the input of a FALLBACK_IMPORT layer is not a constant"
        return _WaitWorkload(source)

    def join(self, workloads: Sequence[Workload]) -> Workload | None:
        """Return one workload that does the work of several, or None if there is none that is faster.

        The workloads are of this factory, for consecutive layers on one device, in their order; none of them returns an
        event. The runtime executes the joined workload in their place, except while it profiles.
        """
        del workloads
        return None

    def native_call(self, workload: Workload) -> Callable[[], object] | None:
        """Return a function that does what a workload's `execute` does, or None if there is none that is faster.

        The runtime asks after a run if all handles keep their memory from then on and no work is left behind by any
        `execute`. The function needs no guard: it cannot fail, and returns nothing after the outputs are written.
        """
        del workload
        return None


@frozen(eq=False, kw_only=False)
class _WaitWorkload:
    """Waits until a tensor is written."""

    _source: TensorHandle

    def execute(self) -> None:
        """Wait."""
        ready = self._source.ready
        if ready is not None:
            ready.wait()
