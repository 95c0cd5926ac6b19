# SPDX-License-Identifier: Apache-2.0
"""Data sets: samples as the inputs of a model, with their labels, read in chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Protocol

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.data.conversion import batch_shape
from ferrule.graph import Array, TensorInfo
from ferrule.report.evaluation_document import DataPart


@frozen
class Chunk:
    """Consecutive samples of a data set."""

    inputs: list[Array]
    """One array per input of the model, in its stored type; for n samples, the first axis is n times the input's."""
    labels: Array | None
    """Class numbers, int64 [n], or real targets, float64 [n, ...]; None without labels."""
    names: tuple[str, ...]
    """A name per sample: its file, or its place in the data, counted from 0."""
    sequences: Array | None
    """int64 [n]: the sequence that each sample belongs to; None without sequences."""


class Source(Protocol):
    """What a reader of one form of data offers: samples by their place."""

    form: str
    """As in `DataPart`."""

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done to each sample, as in `DataPart.preparation`."""

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def read(self, indices: Sequence[int]) -> list[Array]:
        """Return samples, in this order, as one array per input; their first axis is that of `Chunk.inputs`.

        Raises:
            InputError: a sample cannot be read; the message names it.
        """
        ...

    def name(self, index: int) -> str:
        """Return the name of a sample."""
        ...


@frozen
class Labels:
    """The labels of all samples of a source."""

    values: Array
    """Class numbers, int64 [n], or targets, float64 [n, ...]."""
    origin: str
    """As in `DataPart.labels`."""
    classes: tuple[str, ...] = ()
    """The names of the class numbers; empty if they have none."""


@frozen
class DataSet:
    """Samples of one source, in a fixed order; a chunk is read when it is asked for."""

    source: Source
    inputs: tuple[TensorInfo, ...]
    order: Sequence[int]
    """The places of the samples in the source."""
    labels: Labels | None
    sequences: Array | None
    """int64, a number per sample of the source."""
    description: DataPart
    """Without the digest."""
    _digests: list[str] = field(default_factory=list)
    """That of all samples, once `chunks` has yielded them."""

    def __len__(self) -> int:
        return len(self.order)

    @property
    def part(self) -> DataPart:
        """The description; its digest is empty until `chunks` has once yielded all samples."""
        return replace(self.description, digest="".join(self._digests[-1:]))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the labels; empty if they are numbers."""
        return () if self.labels is None else self.labels.classes

    def chunks(self, size: int) -> Iterator[Chunk]:
        """Yield all samples in their order, at most `size` at a time.

        Raises:
            InputError: a sample cannot be read, or is no input of the model; the message names it.
        """
        if size < 1:
            raise FerruleError(f"a chunk has {size} samples, expected at least 1")
        digest = hashlib.sha256("".join(f"{info.dtype}{list(info.shape)}\n" for info in self.inputs).encode())
        for start in range(0, len(self), size):
            chunk = self.take(range(start, min(start + size, len(self))))
            _add(digest, chunk)
            yield chunk
        self._digests.append(digest.hexdigest())

    def only(self, indices: Iterable[int]) -> DataSet:
        """Return the samples with these places in the data set, in this order, as a data set."""
        return replace(self, order=[self.order[index] for index in indices], _digests=[])

    def take(self, indices: Sequence[int]) -> Chunk:
        """Return the samples with these places in the data set, in this order; the errors are those of `chunks`."""
        places = [self.order[index] for index in indices]
        arrays = self.source.read(places)
        for info, array in zip(self.inputs, arrays, strict=True):
            expected = batch_shape(info, len(places))
            assert (array.shape, array.dtype) == (expected, info.dtype.numpy), (info, array.shape, array.dtype)
        return Chunk(
            inputs=arrays,
            labels=None if self.labels is None else self.labels.values[places],
            names=tuple(self.source.name(place) for place in places),
            sequences=None if self.sequences is None else self.sequences[places],
        )


def _add(digest: hashlib._Hash, chunk: Chunk) -> None:
    """Add samples and labels, little endian, sample after sample: independent of the size of the chunks."""
    arrays = chunk.inputs if chunk.labels is None else [*chunk.inputs, chunk.labels]
    rows = [array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(len(chunk.names), -1) for array in arrays]
    for row in zip(*rows, strict=True):
        for part in row:
            digest.update(part.tobytes())


def _shuffled(count: int, seed: int) -> list[int]:
    """Return the numbers below `count` in the order of the SHA-256 of the seed and each number."""
    return sorted(range(count), key=lambda index: hashlib.sha256(f"{seed}:{index}".encode()).digest())


def drawn(count: int, limit: int, seed: int) -> list[int]:
    """Return `limit` of the numbers below `count`, ascending, drawn with a seed."""
    return sorted(_shuffled(count, seed)[:limit])


def drawn_sequences(sequences: Array, limit: int, seed: int) -> list[int]:
    """Return the samples of whole sequences, in their order: sequences as `drawn` would draw them, while they fit.

    Raises:
        InputError: the first drawn sequence alone has more samples than `limit`.
    """
    numbers, counts = np.unique(sequences, return_counts=True)
    order = _shuffled(len(numbers), seed)
    chosen: set[int] = set()
    total = 0
    for index in order:
        if total + int(counts[index]) > limit:
            break
        chosen.add(int(numbers[index]))
        total += int(counts[index])
    if not chosen:
        raise InputError(
            f"a limit of {limit} samples is less than the sequence {int(numbers[order[0]])} has "
            f"({int(counts[order[0]])}), and sequences are not divided"
        )
    return [place for place, number in enumerate(sequences) if int(number) in chosen]
