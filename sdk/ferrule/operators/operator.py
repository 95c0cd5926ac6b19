# SPDX-License-Identifier: Apache-2.0
"""What an operator is: the contract that every module of this package fulfils."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, Descriptor, LayerType, Shape, TensorInfo
from ferrule.operators.sample import LayerSample


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """What is known of a layer's inputs and outputs; None stands for an absent optional input."""

    inputs: tuple[TensorInfo | None, ...]
    outputs: tuple[TensorInfo, ...]

    def input(self, index: int) -> TensorInfo:
        """Return an input that must be there; UnsupportedError if it is not."""
        info = self.inputs[index] if index < len(self.inputs) else None
        if info is None:
            raise UnsupportedError(f"input {index} is absent, expected a tensor")
        return info

    @property
    def output(self) -> TensorInfo:
        """The first output."""
        return self.outputs[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One row of the operator table.

    The callables take the operator's own descriptor; they are pure and never change their arguments.
    """

    descriptor: type[Descriptor]
    type: LayerType
    infer: Callable[[Any, Sequence[TensorInfo | None]], tuple[Shape, ...]]
    """(descriptor, inputs) -> output shapes; UnsupportedError or ModelError says what does not fit."""
    check: Callable[[Any, Operands], None]
    """(descriptor, operands): UnsupportedError names the tensor, type or parameter that the kernel refuses."""
    kernel: Callable[[Any, Operands, Sequence[Array | None]], list[Array]]
    """(descriptor, operands, input arrays) -> output arrays; the reference that every backend equals."""
    macs: Callable[[Any, Operands], int] | None = None
    """Multiply-accumulates of one run; None for operators that are counted as having none."""
    sample: Callable[[LayerSample], None] | None = None
    """Draws a layer for the tests of backends; None for layers that the runtime carries out itself."""
