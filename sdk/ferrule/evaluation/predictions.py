# SPDX-License-Identifier: Apache-2.0
"""A model's predictions for all samples of a data set."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from ferrule._frozen import frozen
from ferrule.budget import hold
from ferrule.evaluation.data import Chunk, DataSet
from ferrule.evaluation.host import HostRuns, compile_kernels
from ferrule.evaluation.on_board import beginnings, cpu_s, joined_rows
from ferrule.evaluation.scoring import reconstruction_errors
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.progress import Progress, Step
from ferrule.report.evaluation_document import PathPart

_CHUNK = 256
"""The most samples that are read at a time."""
_CHUNK_BYTES = 1 << 24

_REAL_BYTES = 8
"""What a value takes as a real number while it is scored."""

Inputs = Callable[[Chunk], list[Array]]
"""From the samples that were read to the inputs of the network that runs."""


@frozen
class Predictions:
    """What a network answered for all samples."""

    outputs: list[Array]
    """Stored values, joined along the first axis."""
    samples: int
    labels: Array | None
    names: tuple[str, ...]
    path: PathPart
    errors: Array | None = None
    """The mean squared error of each sample's reconstruction, if it is the score."""
    notes: tuple[str, ...] = ()


def by_sample(
    network: Network, outputs: Sequence[Array], samples: int, places: Sequence[int] | None = None
) -> list[list[Array]]:
    """Return outputs, joined along the first axis, for the samples at some places, or for each."""
    rows = [array.reshape(samples, *info.shape) for info, array in zip(network.outputs, outputs, strict=True)]
    return [[np.ascontiguousarray(row[index]) for row in rows] for index in places or range(samples)]


def on_host(
    network: Network,
    data: DataSet,
    progress: Progress,
    *,
    reconstructed: int | None = None,
    inputs: Inputs = lambda chunk: chunk.inputs,
    what: str = "",
) -> Predictions:
    """Run all samples on the host; `reconstructed` is the output whose difference from the input is the score.

    `what` names the network in the path and in messages, if it is not the one that is evaluated.
    """
    # as they come, joined, and as real numbers
    answer_bytes = sum(2 * info.size_bytes + _REAL_BYTES * info.elements for info in network.outputs)
    hold(len(data) * answer_bytes, f"the answers to {len(data):,} samples")
    compile_kernels(progress)
    phase = f"computing {len(data):,} samples on the host{what and f', {what}'}"
    progress(Step(phase=phase))
    parts: list[list[Array]] = []
    labels: list[Array] = []
    errors: list[Array] = []
    names: list[str] = []
    before_s, started = cpu_s(), time.perf_counter()
    with HostRuns(network) as host:
        size = sum(info.size_bytes for info in network.inputs)
        for chunk in data.chunks(max(1, min(_CHUNK, _CHUNK_BYTES // max(1, size)))):
            given, first = inputs(chunk), len(names)
            begins = beginnings(data, range(first, first + len(chunk.names)))
            parts.append(host.run(given, begins))
            names += chunk.names
            if chunk.labels is not None:
                labels.append(chunk.labels)
            if reconstructed is not None:
                result = network.outputs[reconstructed]
                outputs = parts[-1][reconstructed]
                errors.append(reconstruction_errors(network.inputs[0], given[0], result, outputs, len(chunk.names)))
            progress(Step(phase=phase, done=len(names), total=len(data)))
        notes, where = host.notes, host.where
    path = PathPart(
        where=f"{where}{what and f', {what}'}",
        samples=len(data),
        cpu_s=cpu_s() - before_s,
        wall_s=time.perf_counter() - started,
    )
    return Predictions(
        outputs=joined_rows(parts),
        samples=len(data),
        labels=np.concatenate(labels) if labels else None,
        names=tuple(names),
        path=path,
        errors=np.concatenate(errors) if errors else None,
        notes=notes,
    )
