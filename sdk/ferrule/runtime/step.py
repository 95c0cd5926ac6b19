# SPDX-License-Identifier: Apache-2.0
"""One step of a loaded network."""

from __future__ import annotations

from collections.abc import Callable

from ferrule._frozen import frozen
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.optimizer.optimized import Crossing


@frozen(eq=False)
class Step:
    """A workload with the facts that the loop over all steps needs."""

    execute: Callable[[], Event | None]
    waits: tuple[TensorHandle, ...]
    """Handles that another backend may still be writing when the step begins."""
    outputs: tuple[TensorHandle, ...]
    name: str
    """The layer's name."""
    type: str
    """The layer's type."""
    backend: str
    device: str
    in_order: bool
    """Whether the step's event may stay open while later steps begin."""
    waiting: bool = False
    """Whether the step only waits for the work of another layer, whose failure is then the step's."""
    crossing: Crossing | None = None
    """The connection between backends that the step serves."""

    @property
    def place(self) -> str:
        """The description of the step in error messages."""
        return f"layer '{self.name}' ({self.type}) on backend '{self.backend}', device '{self.device}'"
