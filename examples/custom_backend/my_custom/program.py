# SPDX-License-Identifier: Apache-2.0
"""The pre-compiled object: a program of additions for the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, DataType, SubgraphView, TensorInfo
from ferrule.network import operands_of
from ferrule.operators import BinaryDescriptor
from my_custom.arithmetic import Combination, FloatSum, add, arithmetic_of

MAX_ELEMENTS = 1 << 16
"""The device's counter has 16 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One addition: the registers that it reads and writes, and its arithmetic."""

    first: int
    second: int
    result: int
    arithmetic: Combination | FloatSum


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditionProgram:
    """Additions in order; a register holds one tensor.

    The first registers are the inputs, `outputs` names those of the outputs, and the others are internal.
    """

    dtype: DataType
    elements: int
    inputs: int
    outputs: tuple[int, ...]
    registers: int
    steps: tuple[Step, ...]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs that the device would compute."""
        registers: list[Array | None] = [*inputs, *[None] * (self.registers - self.inputs)]
        for step in self.steps:
            first, second = registers[step.first], registers[step.second]
            assert first is not None
            assert second is not None
            registers[step.result] = add(step.arithmetic, first, second)
        return [np.asarray(registers[index]) for index in self.outputs]


def compile_program(view: SubgraphView) -> AdditionProgram:
    """Return the program of a subgraph of additions without constants.

    Raises:
        UnsupportedError: a tensor has more elements than the device can count.
    """
    first = view.info(view.outputs[0])
    check_size(first)
    registers = {name: index for index, name in enumerate(view.inputs)}
    steps = []
    for layer in view.layers:
        assert isinstance(layer.descriptor, BinaryDescriptor)
        left, right = layer.present_inputs
        output = layer.outputs[0]
        registers[output] = len(registers)
        steps.append(
            Step(
                first=registers[left],
                second=registers[right],
                result=registers[output],
                arithmetic=arithmetic_of(layer.descriptor, operands_of(view.graph, layer)),
            )
        )
    return AdditionProgram(
        dtype=first.dtype,
        elements=first.elements,
        inputs=len(view.inputs),
        outputs=tuple(registers[name] for name in view.outputs),
        registers=len(registers),
        steps=tuple(steps),
    )


def check_size(info: TensorInfo) -> None:
    """Raise UnsupportedError for a tensor with more elements than the device can count."""
    if info.elements > MAX_ELEMENTS:
        raise UnsupportedError(
            f"tensor '{info.name}' has {info.elements:,} elements, the device counts to {MAX_ELEMENTS:,}"
        )
