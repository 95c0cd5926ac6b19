# SPDX-License-Identifier: Apache-2.0
"""The state of a loaded network: the values that one run leaves to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.errors import FerruleError
from ferrule.graph import Array, Graph
from ferrule.runtime.binding import OutputPort


class KeptState:
    """The values of all states, and memory for those of the next run; from the load on, they are the initial ones.

    A run that fails leaves them invalid until a reset, as on a board.
    """

    def __init__(self, graph: Graph, ports: Sequence[OutputPort]) -> None:
        """`ports` are those of the new values, in the order of the states; a run may write to the memory directly."""
        self._name = graph.name
        self._initial = [state.initial for state in graph.states]
        self._values = [port.empty() for port in ports]
        self._next = [port.empty() for port in ports]
        self.reset()

    def reset(self) -> None:
        """Set the initial values."""
        for value, initial in zip(self._values, self._initial, strict=True):
            np.copyto(value, initial)
        self._is_valid = True

    def begin(self) -> tuple[list[Array], list[Array]]:
        """Return the values and the memory for the new ones; until `end`, the state is invalid.

        Raises:
            FerruleError: the state is invalid.
        """
        if not self._is_valid:
            raise FerruleError(
                f"the state of network '{self._name}' is not valid, since a run has failed",
                hint="begin a new sequence of runs: runtime.reset_state(network)",
            )
        self._is_valid = False
        return self._values, self._next

    def end(self) -> None:
        """Make the new values the state."""
        self._values, self._next = self._next, self._values
        self._is_valid = True
