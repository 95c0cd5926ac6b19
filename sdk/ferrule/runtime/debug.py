# SPDX-License-Identifier: Apache-2.0
"""Shows the tensors of a network as they are computed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.guarded import writable
from ferrule.backends.tensor_handle import TensorHandle
from ferrule.graph import Array, TensorInfo

DebugCallback = Callable[[str, TensorInfo, Array], None]
"""(name of the layer that wrote the tensor, the tensor, its values).

The values are read-only and valid only during the call. The run waits for the callback, which must not call the
runtime."""

_LOGGER = logging.getLogger(__name__)


def log_tensor(layer: str, info: TensorInfo, values: Array) -> None:
    """Log the range of a tensor; this is the default callback."""
    _LOGGER.info(
        "%s: %s %s%s from %s to %s", layer, info.name, info.dtype, list(info.shape), values.min(), values.max()
    )


@dataclass(slots=True)
class DebugSwitch:
    """The callback of one network, shared by its DEBUG workloads."""

    callback: DebugCallback = log_tensor


@frozen(eq=False)
class DebugWorkload:
    """The workload of a DEBUG layer: shows a tensor and copies it to its output."""

    source: TensorHandle
    target: TensorHandle
    layer: str
    info: TensorInfo
    switch: DebugSwitch

    def execute(self) -> None:
        """Call the callback, then copy the tensor; an exception from the callback propagates."""
        values = self.source.map()
        shown = values.view()
        shown.flags.writeable = False
        self.switch.callback(self.layer, self.info, shown)
        np.copyto(writable(self.target), values, casting="no")
        self.target.unmap()
        self.source.unmap()
