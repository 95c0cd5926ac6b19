# SPDX-License-Identifier: Apache-2.0
"""Workloads: layers made ready to run on the host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.graph import Layer, Tensor
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


class WorkloadFactory(ABC):
    """Makes the workloads of one backend in one loaded network."""

    @abstractmethod
    def create_workload(self, info: WorkloadInfo) -> Workload:
        """Return the layer ready to run; whatever can be prepared once (weights, programs) is prepared here.

        Raises:
            UnsupportedError: the backend does not run such a layer; its layer support said so before.
        """
