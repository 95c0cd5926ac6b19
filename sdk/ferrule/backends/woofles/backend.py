# SPDX-License-Identifier: Apache-2.0
"""The Woofles backend and the layers that it supports; `firmware.py` and `host.py` contain its two faces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import LayerSupport, Policy, Support
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.option import BackendOption
from ferrule.backends.shared.host_memory import HostMemoryBackend, HostTensorHandleFactory
from ferrule.backends.target import Target
from ferrule.backends.tensor_handle import (
    FactoryId,
    HandleCapability,
    MemoryManager,
    MemorySource,
    TensorHandleFactory,
)
from ferrule.backends.woofles.firmware import WooflesTarget
from ferrule.backends.woofles.host import WooflesWorkloadFactory
from ferrule.backends.woofles.translation import translate_in
from ferrule.backends.workload import WorkloadFactory
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer


class WooflesSupport:
    """Supports layers that can be translated into one command."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether Woofles supports the layer, or which tensor, type or parameter it refuses."""
        try:
            translate_in(graph, layer)
        except FerruleError as error:
            return Support(str(error))
        return Support()


class Woofles(HostMemoryBackend):
    """A small accelerator for int8 additions, products, fully connected layers and convolutions.

    On the host, its device model executes the commands, controlled through its registers as in firmware.
    """

    id: ClassVar[BackendId] = BackendId("Woofles")

    @override
    def layer_support(self) -> LayerSupport:
        return WooflesSupport()

    @override
    def model_options(self) -> Sequence[BackendOption]:
        return Policy().model_options()

    @override
    def policy(self, target: Target) -> Policy:
        return Policy.of(target.options)

    @override
    def workload_factory(self, memory: MemoryManager | None, options: ModelOptions) -> WorkloadFactory:
        del memory, options
        return WooflesWorkloadFactory()

    @override
    def tensor_handle_factories(self, memory: MemoryManager | None) -> Sequence[TensorHandleFactory]:
        """Return a factory of handles that are mapped and import dma-bufs, as an NPU behind a driver of Linux does.

        The model works on a dma-buf's mapping, so memory that the process cannot map is refused.
        """
        factory = HostTensorHandleFactory(
            FactoryId("Ferrule/Woofles"),
            memory,
            import_flags=MemorySource.DMA_BUF,
            export_flags=MemorySource.UNDEFINED,
            capabilities=frozenset({HandleCapability.FALLBACK_IMPORT_MEMORY_REQUIRED}),
        )
        return (factory,)

    @override
    def firmware_target(self) -> FirmwareTarget:
        return WooflesTarget()
