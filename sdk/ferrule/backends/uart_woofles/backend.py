# SPDX-License-Identifier: Apache-2.0
"""The UartWoofles backend: it takes what Woofles takes, on boards alone."""

from __future__ import annotations

from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import Backend, LayerSupport, Support
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.target import Target
from ferrule.backends.uart_woofles.firmware import MAX_STORE_BYTES, UartWooflesTarget, constant_bytes
from ferrule.backends.woofles.translation import translate_in
from ferrule.errors import FerruleError
from ferrule.graph import Graph, Layer


class UartWooflesSupport:
    """Takes what can be translated into one command, if a device can have the memory for its weights."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether UartWoofles has the layer, and which tensor, type or parameter it refuses."""
        try:
            work = translate_in(graph, layer)
        except FerruleError as error:
            return Support(reason=str(error))
        if constant_bytes(work) > MAX_STORE_BYTES:
            return Support(reason=f"its constants take {constant_bytes(work)} B, more than {MAX_STORE_BYTES}")
        return Support()


class UartWoofles(Backend):
    """Woofles's operations on an accelerator behind a serial line, with a memory of its own; in firmware only."""

    id: ClassVar[BackendId] = BackendId("UartWoofles")

    @override
    def layer_support(self) -> LayerSupport:
        return UartWooflesSupport()

    @override
    def firmware_target(self) -> FirmwareTarget:
        return UartWooflesTarget()
