# SPDX-License-Identifier: Apache-2.0
"""How the elements of a model's tensor are ordered in a tensor of the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from operator import mul

from ferrule._frozen import frozen
from ferrule.graph import Shape

NHWC = (0, 2, 3, 1)
"""The order of the axes of an image [batch, channels, height, width] in the network."""


def identity(rank: int) -> tuple[int, ...]:
    """Return the order of axes that changes nothing."""
    return tuple(range(rank))


@frozen
class Layout:
    """The elements of a tensor: axis i of the network's tensor is axis `order[i]` of one with the shape `split`.

    The model's tensor has `shape`. If that is not `split`, a reshape is pending: it would need the axes in their own
    order.
    """

    order: tuple[int, ...]
    split: Shape
    shape: Shape

    @classmethod
    def ordered(cls, order: tuple[int, ...], shape: Shape) -> Layout:
        """Return the layout of a tensor that only has another order of axes in the network."""
        return cls(order=order, split=shape, shape=shape)

    @classmethod
    def of(cls, stored: Shape, order: Sequence[int] | None = None) -> Layout:
        """Return the layout of a tensor of the network with a shape and an order of axes, by default the model's."""
        order = identity(len(stored)) if order is None else tuple(order)
        return cls.ordered(order, tuple(stored[order.index(axis)] for axis in range(len(order))))

    @property
    def is_pending(self) -> bool:
        """Whether the model's tensor has another shape than `split`."""
        return self.split != self.shape

    @property
    def is_moved(self) -> bool:
        """Whether the axes have another order than the model's."""
        return self.order != identity(len(self.order))

    @property
    def stored(self) -> Shape:
        """The shape of the network's tensor."""
        return tuple(self.split[axis] for axis in self.order)

    def transposed(self, permutation: Sequence[int]) -> Layout:
        """Return the layout after the model's tensor, which is not pending, was transposed; the elements stay."""
        places = {axis: index for index, axis in enumerate(permutation)}
        shape = tuple(self.shape[axis] for axis in permutation)
        return self.ordered(tuple(places[axis] for axis in self.order), shape)

    def reshaped(self, shape: Shape) -> Layout:
        """Return the layout after the model's tensor was reshaped; the elements stay.

        It is pending if the reshape joins axes that are not neighbours in the network's tensor.
        """
        if shape == self.split:
            return replace(self, shape=shape)
        order = _regrouped(self.split, self.order, shape)
        return replace(self, shape=shape) if order is None else self.ordered(order, shape)

    def settled(self) -> Layout:
        """Return the layout after a reshape of the network's tensor; it stays pending if that does not suffice."""
        return self.reshaped(self.shape)


def moves_nothing(shape: Shape, permutation: Sequence[int]) -> bool:
    """Return whether a transposition of a tensor of this shape only moves axes with an extent of 1."""
    moved = [axis for axis in permutation if shape[axis] != 1]
    return moved == sorted(moved)


def without(order: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Return the order of the axes that remain when some are removed from the model's tensor."""
    remaining = sorted(set(order) - set(axes))
    return tuple(remaining.index(axis) for axis in order if axis not in axes)


def _regrouped(old: Shape, order: tuple[int, ...], new: Shape) -> tuple[int, ...] | None:
    """Return the order of the axes of a reshaped tensor, whose elements stay; None if there is none."""
    stored = [axis for axis in order if old[axis] != 1]
    groups = sorted(_groups(old, new), key=lambda group: stored.index(group[0][0]))
    if [axis for before, _ in groups for axis in before] != stored:
        return None
    result = [axis for _, after in groups for axis in after]
    for axis, extent in enumerate(new):
        if extent == 1:
            result.insert(result.index(axis - 1) + 1 if axis else 0, axis)
    return tuple(result)


def _groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """Return which axes of a shape become which of another one, without axes of 1, in the smallest groups."""
    ends = [{axis: end for axis, end in enumerate(accumulate(shape, mul)) if shape[axis] != 1} for shape in (old, new)]
    common = sorted(set(ends[0].values()).intersection(ends[1].values()))
    before, after = (
        [[axis for axis, end in each.items() if low < end <= high] for low, high in pairwise([0, *common])]
        for each in ends
    )
    return list(zip(before, after, strict=True))
