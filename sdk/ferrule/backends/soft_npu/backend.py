# SPDX-License-Identifier: Apache-2.0
"""The SoftNpu backend and the layers that it supports; its firmware face is in `firmware.py`."""

from __future__ import annotations

from typing import ClassVar

from ferrule._typing import override
from ferrule.backends.backend import Backend, LayerSupport, Support
from ferrule.backends.cpu_acc.backend import CpuAccSupport
from ferrule.backends.device import BackendId
from ferrule.backends.firmware import FirmwareTarget
from ferrule.backends.soft_npu.firmware import SoftNpuTarget
from ferrule.backends.target import Target
from ferrule.graph import Graph, Layer


class SoftNpuSupport:
    """Supports layers that have a C kernel and at least one computed input; other layers would only copy constants."""

    def supports(self, graph: Graph, layer: Layer, target: Target) -> Support:
        """Return whether the device's kernels support the layer."""
        if all(graph.tensor(name).is_constant for name in layer.present_inputs):
            return Support("all of its inputs are constants")
        return CpuAccSupport().supports(graph, layer, target)


class SoftNpu(Backend):
    """The C kernels, working on the device's own memory, behind the device API; in firmware only."""

    id: ClassVar[BackendId] = BackendId("SoftNpu")

    @override
    def layer_support(self) -> LayerSupport:
        return SoftNpuSupport()

    @override
    def firmware_target(self) -> FirmwareTarget:
        return SoftNpuTarget()
