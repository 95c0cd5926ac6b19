# SPDX-License-Identifier: Apache-2.0
"""The UartWoofles backend: it supports the same layers as Woofles, in firmware only."""

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
    """Supports layers that can be translated into one command and whose constants fit into the largest store."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether UartWoofles supports the layer, or which tensor, type or parameter it refuses."""
        try:
            work = translate_in(graph, layer)
        except FerruleError as error:
            return Support(str(error))
        if constant_bytes(work) > MAX_STORE_BYTES:
            return Support(f"its constants take {constant_bytes(work)} B, more than {MAX_STORE_BYTES}")
        return Support()


class UartWoofles(Backend):
    """An accelerator with its own memory behind a serial line, with the operations of Woofles; in firmware only."""

    id: ClassVar[BackendId] = BackendId("UartWoofles")

    @override
    def layer_support(self) -> LayerSupport:
        return UartWooflesSupport()

    @override
    def firmware_target(self) -> FirmwareTarget:
        return UartWooflesTarget()
