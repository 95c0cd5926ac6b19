# SPDX-License-Identifier: Apache-2.0
"""The options of the optimizer."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field

from ferrule._frozen import frozen
from ferrule.backends.device import Device
from ferrule.backends.optimization_views import ModelOptions
from ferrule.backends.target import CoreFeatures, Face, Goal, Memory, Price, Target
from ferrule.backends.tensor_handle import MemorySource
from ferrule.timing.planned import Pace

ALLOCATORS = (
    (MemorySource.MALLOC, MemorySource.MALLOC | MemorySource.DMA_BUF)
    if sys.platform == "linux"
    else (MemorySource.MALLOC,)
)
"""The memory that a runtime can allocate without an allocator of the application; a dma-buf is mapped here, too."""
TRANSFERS = ("import", "copy")
"""The values of `OptimizerOptions.fallback_transfers`."""


@frozen
class OptimizerOptions:
    """How a network is optimised; the defaults keep the network's results and data types."""

    face: Face = Face.HOST
    import_enabled: bool = False
    """Allow memory to pass from one backend to another, and the network's inputs to be imported."""
    fallback_transfers: Mapping[str, str] = field(default_factory=dict)
    """By backend: "copy" to copy all tensors that pass to and from it, or "import", the default."""
    allocators: tuple[MemorySource, ...] = ALLOCATORS
    """The memory that the runtime can allocate between backends: for each allocator, in order of preference, the kinds
    that its memory is at the same time. Those of an application's own (`fallback_allocators`) are to be added."""
    export_enabled: bool = False
    """Allow the network's outputs to be exported without a copy."""
    reduce_fp32_to_fp16: bool = False
    """Compute float32 layers in float16 if the first preferred backend has that capability."""
    debug: bool = False
    """Insert a DEBUG layer after every output of every layer."""
    simplify: bool = True
    """First run the backend-independent passes, which keep every bit of the outputs."""
    fallback: bool = True
    """Assign a layer to the next backend if its first one cannot have it, with a message; False: an error, which
    lists the layers and the reasons. The first backend is that of the layer's hint, or else of the preferences."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """By layer: "Backend" or "Backend/device", tried before the preferences; the backend need not be one of them."""
    devices: tuple[Device, ...] = ()
    """Device instances. A layer goes to the device of its hint, or else to the first device listed here for its
    backend. A backend without a device here gets one device, which has the backend's name."""
    model_options: Mapping[str, ModelOptions] = field(default_factory=dict)
    """By backend: the options passed to the backend with each subgraph and with its workloads; checked against
    `Backend.model_options`."""
    core: CoreFeatures | None = None
    """The processor core of the board that the network is optimised for; None on the host."""
    memories: tuple[Memory, ...] = ()
    """The memories of that board."""
    goal: Goal = Goal.BALANCED
    """The cost that is minimised where several kernels can run a layer."""
    own_price: Price | None = None
    """The user's own price of bytes; None for that of the goal."""
    pace: Pace | None = None
    """How fast the core runs kernels from the board's memories; None if that is unknown."""
    input_rows: bool = False
    """Whether the firmware takes the network's input row by row."""
    overlap: bool = True
    """Whether the firmware's devices work beside the core, for which their subgraphs may be divided."""

    def target(self, device: Device) -> Target:
        """Return the target description that is passed to the device's backend with each query about the device."""
        return Target(
            face=self.face,
            device=device,
            core=self.core,
            memories=self.memories,
            options=self.model_options.get(device.backend, {}),
            goal=self.goal,
            own_price=self.own_price,
            pace=self.pace,
            input_rows=self.input_rows,
        )
