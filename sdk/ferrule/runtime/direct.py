# SPDX-License-Identifier: Apache-2.0
"""The short way of a run, for networks whose tensors keep their memory and whose steps end when they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.graph import Array
from ferrule.runtime.binding import Arrays, Port
from ferrule.runtime.step import Step

_Place = tuple[Array, tuple[int, ...], np.dtype[Any]]
"""The memory of a tensor, with its shape and dtype."""


@frozen(eq=False)
class DirectRun:
    """A run of one sample: copies the inputs, makes the calls and copies the outputs; nothing is to be cleaned up.

    It is one function of few objects: after other work, a run waits mostly for its own code and data to be fetched.
    """

    steps: tuple[Step, ...]
    calls: tuple[Callable[[], Any], ...]
    """One per step."""
    inputs: tuple[_Place, ...]
    outputs: tuple[_Place, ...]

    @classmethod
    def of(cls, steps: tuple[Step, ...], sources: Sequence[Port], results: Sequence[Port]) -> DirectRun | None:
        """Return the short way through the steps after a run; None if there is none."""
        inputs, outputs = _places(sources), _places(results)
        if len(inputs) < len(sources) or len(outputs) < len(results) or not all(step.is_plain for step in steps):
            return None
        calls = tuple((step.native_call and step.native_call()) or step.execute for step in steps)
        return cls(steps=steps, calls=calls, inputs=inputs, outputs=outputs)

    def run(self, given: Arrays, buffers: Arrays | None) -> list[Array] | None:
        """Return the outputs; None if it cannot be run with these arrays, so that no step was executed."""
        if not isinstance(given, (list, tuple)) or len(given) != len(self.inputs):
            return None
        for array, (memory, shape, dtype) in zip(given, self.inputs):  # noqa: B905 the length is checked
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
                return None
            memory[...] = array
        if buffers is not None:
            if not isinstance(buffers, (list, tuple)) or len(buffers) != len(self.outputs):
                return None
            for array, (_, shape, dtype) in zip(buffers, self.outputs):  # noqa: B905 the same
                if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
                    return None
                if not array.flags.writeable:
                    return None
        for index, call in enumerate(self.calls):
            try:
                event = call()
                if event is not None:
                    event.wait()
            except Exception as error:
                self.steps[index].locate(error)
                raise
        if buffers is None:
            return [memory.copy() for memory, _, _ in self.outputs]
        for array, (memory, _, _) in zip(buffers, self.outputs):  # noqa: B905 the same
            array[...] = memory
        return list(buffers)


def _places(ports: Sequence[Port]) -> tuple[_Place, ...]:
    """Return the places of those ports whose tensors keep their memory."""
    memories = [(port.info, port.memory) for port in ports]
    return tuple((memory, info.shape, info.dtype.numpy) for info, memory in memories if memory is not None)
