# SPDX-License-Identifier: Apache-2.0
"""The outputs of a float model and of its quantised forms, for the same samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.evaluation.data import DataSet
from ferrule.evaluation.data.stored import stored
from ferrule.evaluation.predictions import on_host
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.network.samples import in_real_numbers
from ferrule.progress import Progress


def real_outputs(network: Network, data: DataSet, progress: Progress, what: str) -> tuple[Array, ...]:
    """Return a network's outputs for samples of the float model, in real numbers, joined along the first axis.

    `what` names the network in messages.
    """
    done = on_host(network, stored(data, network), progress, what=what)
    return tuple(in_real_numbers(network.outputs, done.outputs))


def noise(real: Sequence[Array], found: Sequence[Array]) -> float:
    """Return the root mean square of the differences of outputs, by that of the float model's; 0 if that is 0."""
    pairs = [(np.asarray(one, np.float64), np.asarray(two, np.float64)) for one, two in zip(real, found, strict=True)]
    signal = sum(float(np.sum(one**2)) for one, _ in pairs)
    return (sum(float(np.sum((two - one) ** 2)) for one, two in pairs) / signal) ** 0.5 if signal else 0.0
