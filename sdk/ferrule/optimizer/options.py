# SPDX-License-Identifier: Apache-2.0
"""What the user can ask of the optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferrule.backends.device import Device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.target import CoreFeatures, Face, Memory, Target


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerOptions:
    """How a network is optimised; the defaults change nothing that the user could miss."""

    face: Face = Face.HOST
    import_enabled: bool = False
    """Memory may be handed from one backend to another, and the network's inputs may be imported."""
    export_enabled: bool = False
    """The network's outputs may be given away without a copy."""
    reduce_fp32_to_fp16: bool = False
    """Compute in float16 what the network has in float32, if the first preferred backend can."""
    debug: bool = False
    """Put a DEBUG layer behind every output of every layer."""
    simplify: bool = True
    """Run the backend-independent passes, which keep every bit of the outputs, first."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """By layer: "Backend" or "Backend/device", tried before the preferences; the backend need not be preferred."""
    devices: tuple[Device, ...] = ()
    """Device instances. A layer goes to its hint's device, else to the first here that is of its backend; a backend
    without one here has a device that is called like it."""
    model_options: Mapping[str, ModelOptions] = field(default_factory=dict)
    """By backend: what the backend is given with each subgraph, and with its workloads; checked against
    `Backend.model_options`."""
    core: CoreFeatures | None = None
    """The core of the board that the network is optimised for; None on the host."""
    memories: tuple[Memory, ...] = ()
    """The memories of that board."""

    def target(self, device: Device) -> Target:
        """Return what the device's backend is told with each question about it."""
        return Target(
            face=self.face,
            device=device,
            core=self.core,
            memories=self.memories,
            options=self.model_options.get(device.backend, {}),
        )
