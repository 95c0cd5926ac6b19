# SPDX-License-Identifier: Apache-2.0
"""Compares a quantised model with the model in float32 that it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from ferrule.errors import FerruleError, InputError
from ferrule.evaluation.data import Chunk, DataSet
from ferrule.evaluation.losses import layer_losses
from ferrule.evaluation.predictions import Predictions, on_host
from ferrule.graph import Array
from ferrule.interface import either
from ferrule.network import Network
from ferrule.progress import Progress
from ferrule.report.losses import LossPart
from ferrule.report.verdicts import compare

NAME = "float model"
FROM_DATA = "the data"
DEQUANTISED = "the quantised inputs, dequantised"

_FLOAT = either("--float", "float_model")


def check_float(network: Network, other: Network) -> None:
    """Raise FerruleError unless a network takes the same samples as another in float32."""
    if len(network.inputs) != len(other.inputs):
        raise FerruleError(f"{_FLOAT}: its model has {len(other.inputs)} inputs, expected {len(network.inputs)}")
    for mine, its in zip(network.inputs, other.inputs, strict=True):
        if its.dtype.numpy.kind != "f":
            raise FerruleError(
                f"{_FLOAT}: input '{its.name}' of its model is {its.dtype}, expected float32",
                hint="give the model from before its quantisation",
            )
        if mine.shape != its.shape:
            raise FerruleError(
                f"{_FLOAT}: input '{its.name}' of its model has the shape {list(its.shape)}, "
                f"expected {list(mine.shape)}"
            )
    if bool(network.states) != bool(other.states):
        raise FerruleError(f"{_FLOAT}: one of the two models has a state, and the other has none")


def float_predictions(
    network: Network,
    other: Network,
    data: DataSet,
    reopen: Callable[[Network], DataSet] | None,
    progress: Progress,
    *,
    reconstructed: int | None = None,
) -> tuple[Predictions, str]:
    """Return the predictions of the float model, and where its inputs come from.

    They come from the data's real values, which `reopen` opens for a network, or else are the quantised inputs.
    """
    if reopen is not None:
        try:
            return on_host(other, reopen(other), progress, reconstructed=reconstructed, what=NAME), FROM_DATA
        except InputError:  # the data has stored values, which a float input cannot take
            pass

    inputs = partial(_dequantised, network)
    return on_host(other, data, progress, reconstructed=reconstructed, inputs=inputs, what=NAME), DEQUANTISED


def _dequantised(network: Network, chunk: Chunk) -> list[Array]:
    return [info.dequantize(array).astype(np.float32) for info, array in zip(network.inputs, chunk.inputs, strict=True)]


def float_losses(
    network: Network, other: Network, data: DataSet, real: DataSet | None, count: int, progress: Progress
) -> tuple[tuple[LossPart, ...], int]:
    """Return what layers lose on the first samples of the data, and the number of those of which it is not known.

    `real` has the samples as the float model takes them; without it, they are the quantised inputs.
    """

    def pairs() -> Iterator[tuple[Sequence[Array], Sequence[Array]]]:
        for index in range(count):
            chunk = data.take([index])
            yield _dequantised(network, chunk) if real is None else real.take([index]).inputs, chunk.inputs

    return layer_losses(network, other, {}, pairs(), count, progress) if count else ((), 0)


def largest_difference(mine: Sequence[Array], its: Sequence[Array]) -> float | None:
    """Return the largest difference of outputs in real units; None if they have other shapes or are not finite."""
    return compare(mine, its)[1] if len(mine) == len(its) else None
