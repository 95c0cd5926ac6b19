# SPDX-License-Identifier: Apache-2.0
"""One step of a loaded network."""

from __future__ import annotations

from collections.abc import Callable

from ferrule._frozen import frozen
from ferrule.backends.tensor_handle import Event, TensorHandle
from ferrule.errors import FerruleError
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
    native_call: Callable[[], Callable[[], object] | None] | None = None
    """Returns what may be called in place of `execute` in direct runs; see `WorkloadFactory.native_call`."""
    crossing: Crossing | None = None
    """The connection between backends that the step serves."""

    @property
    def is_plain(self) -> bool:
        """Whether the step neither waits for the work of other steps nor leaves its own work to be waited for."""
        return not (self.waits or self.in_order or self.waiting)

    @property
    def place(self) -> str:
        """The description of the step in error messages."""
        return f"layer '{self.name}' ({self.type}) on backend '{self.backend}', device '{self.device}'"

    def locate(self, error: Exception) -> None:
        """Add the place of the step to an error."""
        if isinstance(error, FerruleError):
            error.args = (f"{self.place}: {error}",)
        else:
            error.add_note(f"in {self.place}")
