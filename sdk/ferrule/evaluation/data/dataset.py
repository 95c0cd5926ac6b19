# SPDX-License-Identifier: Apache-2.0
"""Data sets: samples as the inputs of a model, with their labels, read in chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(slots=True)
class _Progress:
    digest: str = ""


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
    _progress: _Progress = field(default_factory=_Progress)

    def __len__(self) -> int:
        return len(self.order)

    @property
    def part(self) -> DataPart:
        """The description; its digest is empty until `chunks` has once yielded all samples."""
        return replace(self.description, digest=self._progress.digest)

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
        digest = _Digest(self.inputs)
        for start in range(0, len(self), size):
            chunk = self.take(range(start, min(start + size, len(self))))
            digest.add(chunk)
            yield chunk
        self._progress.digest = digest.text()

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


class _Digest:
    """SHA-256 of samples and labels, little endian, sample after sample: independent of the size of the chunks."""

    def __init__(self, inputs: Sequence[TensorInfo]) -> None:
        self._hash = hashlib.sha256()
        self._hash.update("".join(f"{info.dtype}{list(info.shape)}\n" for info in inputs).encode())

    def add(self, chunk: Chunk) -> None:
        rows = [_little_endian(array).reshape(len(chunk.names), -1) for array in chunk.inputs]
        if chunk.labels is not None:
            rows.append(_little_endian(chunk.labels).reshape(len(chunk.names), -1))
        for row in zip(*rows, strict=True):
            for part in row:
                self._hash.update(part.tobytes())

    def text(self) -> str:
        return self._hash.hexdigest()


def _little_endian(array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def drawn(count: int, limit: int, seed: int) -> list[int]:
    """Return `limit` of the numbers below `count`, ascending, drawn by the SHA-256 of the seed and each number."""

    def key(index: int) -> bytes:
        return hashlib.sha256(f"{seed}:{index}".encode()).digest()

    return sorted(sorted(range(count), key=key)[:limit])


def drawn_sequences(sequences: Array, limit: int, seed: int) -> list[int]:
    """Return the samples of whole sequences, in their order: sequences as `drawn` would draw them, while they fit.

    Raises:
        InputError: the first drawn sequence alone has more samples than `limit`.
    """
    numbers, counts = np.unique(sequences, return_counts=True)
    order = sorted(range(len(numbers)), key=lambda index: hashlib.sha256(f"{seed}:{index}".encode()).digest())
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
