# SPDX-License-Identifier: Apache-2.0
"""What a backend is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NewType, Protocol

from ferrule.backends.firmware import FirmwareTarget
from ferrule.graph import Graph, Layer

BackendId = NewType("BackendId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Whether a backend takes a layer, and why not."""

    reason: str = ""
    """Empty if it takes the layer; else which tensor, type or parameter it refuses."""

    def __bool__(self) -> bool:
        return not self.reason


class LayerSupport(Protocol):
    """A backend's answer to "may I give you this layer?"."""

    def supports(self, graph: Graph, layer: Layer) -> Support:
        """Return whether the backend can run the layer of that graph."""
        ...


class Backend(ABC):
    """A lightweight, stateless factory; nothing may depend on the lifetime of a backend object."""

    id: ClassVar[BackendId]

    @abstractmethod
    def layer_support(self) -> LayerSupport:
        """Return who knows which layers this backend takes."""

    @abstractmethod
    def firmware_target(self) -> FirmwareTarget | None:
        """Return how its layers become C; None if it runs on the host only."""
