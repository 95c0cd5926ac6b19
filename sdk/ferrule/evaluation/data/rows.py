# SPDX-License-Identifier: Apache-2.0
"""Samples that are in memory, or in a mapped file, as the rows of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ferrule._frozen import frozen
from ferrule.evaluation.data.conversion import Conversion, batch_shape
from ferrule.graph import Array


@frozen
class Rows:
    """The values of one input: a row per sample, in any type that the rule converts."""

    values: Array
    conversion: Conversion
    rule: str
    steps: tuple[str, ...]
    where: Callable[[int, int], str] = lambda _first, _last: ""
    """The place of samples, from the first to the last, for messages; stored values need none."""


@dataclass(slots=True)
class RowSource:
    """Samples of arrays, one per input of the model."""

    form: str
    _inputs: Sequence[Rows]

    def __len__(self) -> int:
        return len(self._inputs[0].values)

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done to each sample."""
        return tuple(dict.fromkeys(step for each in self._inputs for step in each.steps))

    def read(self, indices: Sequence[int]) -> list[Array]:
        """Return samples; see `Source`."""
        chosen: list[int] | slice = list(indices)
        first, last = indices[0], indices[-1]
        if list(range(first, first + len(indices))) == chosen:
            chosen = slice(first, first + len(indices))  # a view, without a copy of a mapped file
        return [
            each.conversion.stored(
                each.values[chosen].reshape(batch_shape(each.conversion.info, len(indices))),
                each.rule,
                each.where(first, last),
            )
            for each in self._inputs
        ]

    def name(self, index: int) -> str:
        """Return the sample's place."""
        return str(index)
