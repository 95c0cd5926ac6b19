# SPDX-License-Identifier: Apache-2.0
"""Workloads: layers made ready to run on the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.graph import Graph, Layer, Tensor
from ferrule.operators.operator import Operands


class Workload(Protocol):
    """One layer of a loaded network; it keeps the handles that it was made with."""

    def execute(self) -> Event | None:
        """Run the layer on what its input handles hold now.

        Returns None when the outputs are written, or an event that ends when they are: then the backend has the
        capability ASYNC_EXECUTION, and its workloads on one device take effect in the order of their starts. Raises
        what goes wrong.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WorkloadInfo:
    """What a factory makes a workload from."""

    layer: Layer
    operands: Operands
    inputs: tuple[TensorHandle | None, ...]
    """One per input of the layer; None where it is absent or a constant."""
    constants: tuple[Tensor | None, ...]
    """One per input of the layer: the tensor where it is a constant."""
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
            operands=Operands(inputs=graph.input_infos(layer), outputs=graph.output_infos(layer)),
            inputs=tuple(None if each is None or each.is_constant else handle_of(each.info.name) for each in tensors),
            constants=tuple(each if each is not None and each.is_constant else None for each in tensors),
            outputs=tuple(handle_of(name) for name in layer.outputs),
            target=target,
        )


class WorkloadFactory(ABC):
    """Makes the workloads of one backend in one loaded network."""

    @abstractmethod
    def create_workload(self, info: WorkloadInfo) -> Workload:
        """Return the layer ready to run; whatever can be prepared once (weights, programs) is prepared here.

        Raises:
            UnsupportedError: the backend does not run such a layer; its layer support said so before.
        """
