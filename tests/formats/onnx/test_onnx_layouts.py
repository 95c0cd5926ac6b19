# SPDX-License-Identifier: Apache-2.0
"""Random chains of operators that reorder, reshape and combine axes, against onnxruntime."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from onnx_models import agrees, model, node

CHAINS = 60
LENGTH = 9


class Chain:
    """A model that grows node by node; `shape` is that of the last tensor."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.generator = np.random.default_rng(seed)
        self.shape = tuple(self.dice.choice([1, 2, 3, 4]) for _ in range(self.dice.choice([3, 4, 4, 4])))
        self.first = self.shape
        self.name = "x"
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.made: dict[str, tuple[int, ...]] = {"x": self.shape}

    def constant(self, data: Any) -> str:  # noqa: ANN401
        name = f"k{len(self.constants)}"
        self.constants[name] = np.asarray(data)
        return name

    def floats(self, *shape: int) -> str:
        return self.constant(self.generator.normal(size=shape).astype(np.float32))

    def add(self, op: str, others: str, shape: tuple[int, ...], **attributes: Any) -> None:  # noqa: ANN401
        result = f"t{len(self.nodes)}"
        self.nodes.append(node(op, f"{self.name} {others}", result, **attributes))
        self.name, self.shape = result, shape
        self.made[result] = shape

    def axis(self) -> int:
        return self.dice.randrange(len(self.shape))

    def grow(self) -> None:
        """Add one operator that fits the last tensor."""
        steps = [self.transpose, self.reshape, self.relu, self.shift, self.softmax, self.reduce, self.slice, self.join]
        steps += [self.unsqueeze, self.gather, self.combine, self.flatten, self.multiply]
        if len(self.shape) in {3, 4}:
            steps += [self.convolve] * 4
        self.dice.choice(steps)()

    def convolve(self) -> None:
        channels = self.dice.choice([2, 3, 4])
        kernel = self.floats(channels, self.shape[1], *(1,) * (len(self.shape) - 2))
        self.add("Conv", kernel, (self.shape[0], channels, *self.shape[2:]))

    def transpose(self) -> None:
        order = self.dice.sample(range(len(self.shape)), len(self.shape))
        self.add("Transpose", "", tuple(self.shape[axis] for axis in order), perm=order)

    def reshape(self) -> None:
        rest, shape = math.prod(self.shape), []
        while rest > 1 and len(shape) < 4:
            extent = self.dice.choice([each for each in range(1, rest + 1) if rest % each == 0])
            shape.append(extent)
            rest //= extent
        shape.append(rest)
        self.add("Reshape", self.constant(np.array(shape)), tuple(shape))

    def relu(self) -> None:
        self.add("LeakyRelu", "", self.shape)

    def shift(self) -> None:
        begin = self.dice.randrange(len(self.shape) + 1)
        shape = [self.dice.choice([1, extent]) for extent in self.shape[begin:]]
        self.add("Add", self.floats(*shape), self.shape)

    def softmax(self) -> None:
        self.add("Softmax", "", self.shape, axis=self.axis())

    def reduce(self) -> None:
        axis, keep = self.axis(), len(self.shape) < 3 or self.dice.random() < 0.5
        shape = (*self.shape[:axis], *(1,) * keep, *self.shape[axis + 1 :])
        self.add("ReduceSum", self.constant(np.array([axis])), shape, keepdims=int(keep))

    def slice(self) -> None:
        axis = self.axis()
        step = self.dice.choice([1, 1, 2, -1])
        start, end = (0, 1000) if step > 0 else (-1, -1000)
        parameters = " ".join(self.constant(np.array([each])) for each in (start, end, axis, step))
        extent = -(-self.shape[axis] // abs(step))
        self.add("Slice", parameters, (*self.shape[:axis], extent, *self.shape[axis + 1 :]))

    def join(self) -> None:
        axis = self.axis()
        if math.prod(self.shape) < 500:
            shape = (*self.shape[:axis], 2 * self.shape[axis], *self.shape[axis + 1 :])
            self.add("Concat", self.name, shape, axis=axis)

    def unsqueeze(self) -> None:
        if len(self.shape) < 5:
            axis = self.dice.randrange(len(self.shape) + 1)
            self.add("Unsqueeze", self.constant(np.array([axis])), (*self.shape[:axis], 1, *self.shape[axis:]))

    def gather(self) -> None:
        axis, count = self.axis(), self.dice.choice([1, 3])
        indices = self.generator.integers(-self.shape[axis], self.shape[axis], count)
        shape = (*self.shape[:axis], count, *self.shape[axis + 1 :])
        self.add("Gather", self.constant(indices), shape, axis=axis)

    def combine(self) -> None:
        fitting = [name for name, shape in self.made.items() if shape == self.shape]
        self.add("Mul", self.dice.choice(fitting), self.shape)

    def flatten(self) -> None:
        axis = self.dice.randrange(len(self.shape) + 1)
        self.add("Flatten", "", (math.prod(self.shape[:axis]), math.prod(self.shape[axis:])), axis=axis)

    def multiply(self) -> None:
        self.add("MatMul", self.floats(self.shape[-1], 3), (*self.shape[:-1], 3))


def test_a_tensor_and_its_transpose_of_the_same_shape_are_not_mixed_up() -> None:
    """Both are the same tensor of the network, in two orders of axes, and each needs its channels last."""
    nodes = [
        node("Transpose", "x", "t", perm=[0, 1, 3, 2]),
        node("AveragePool", "x", "y", kernel_shape=[2, 1]),
        node("AveragePool", "t", "z", kernel_shape=[2, 1]),
    ]
    for order in ([0, 1, 2], [0, 2, 1]):
        agrees(model([nodes[index] for index in order], {"x": ("float32", [1, 4, 4, 4])}, ["y", "z"]))


@pytest.mark.parametrize("seed", range(CHAINS))
def test_a_chain_agrees_with_onnxruntime(seed: int) -> None:
    chain = Chain(seed)
    for _ in range(LENGTH):
        chain.grow()
    if not chain.nodes:
        chain.relu()
    agrees(model(chain.nodes, {"x": ("float32", chain.first)}, [chain.name], chain.constants))
