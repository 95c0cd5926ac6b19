# SPDX-License-Identifier: Apache-2.0
"""The state of a graph: tensors whose values live from one run to the next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import UnsupportedError
from ferrule.graph.datatype import DataType
from ferrule.graph.names import check_name
from ferrule.graph.tensor import Array, Quantization, Shape, TensorInfo


@frozen(eq=False)
class State:
    """A value that one run leaves to the next run of the same instance.

    A graph remains a function: it reads the old value as one tensor and computes the new one as another.
    """

    name: str
    """Unique among the states of the graph."""
    source: str
    """The tensor that has the value when a run begins; no layer writes it."""
    result: str
    """The tensor with whose value the next run begins; of the source's shape and type."""
    initial: Array
    """The value after a reset, read-only; of the source's shape and type."""

    def __post_init__(self) -> None:
        check_name(self.name, "state")


@frozen
class Kept:
    """A state that is added to the graph together with its reader, whose further outputs have the new values.

    Its value after a reset is `reset_value`.
    """

    role: str
    """The part of the name that follows the layer's."""
    shape: Shape
    dtype: DataType
    quantization: Quantization | None = None

    def info(self, name: str) -> TensorInfo:
        """Return the description of the tensor with the old value."""
        return TensorInfo(name, self.shape, self.dtype, quantization=self.quantization)


def refuse_states(network: str, states: Sequence[State], where: str) -> None:
    """Raise UnsupportedError if there are states; `where` names what does not keep values between runs."""
    if states:
        names = ", ".join(f"'{state.name}'" for state in states)
        raise UnsupportedError(f"network '{network}' keeps {names} from run to run, which {where} does not support")


def reset_value(info: TensorInfo) -> Array:
    """Return the value of a state without an initialiser, as in TensorFlow Lite Micro: 0, or int8's zero point."""
    value = info.zero_point if info.dtype is DataType.INT8 and info.quantization is not None else 0
    return np.full(info.shape, value, info.dtype.numpy)
