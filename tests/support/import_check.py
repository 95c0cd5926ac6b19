# SPDX-License-Identifier: Apache-2.0
"""Checks that hold for the import of arbitrary bytes."""

from __future__ import annotations

import numpy as np
from compare import graph_differences

from ferrule import formats
from ferrule.errors import FerruleError
from ferrule.formats import to_tflite
from ferrule.network import Network
from ferrule.testing.backends.comparison import random_inputs

MAX_ELEMENTS = 100_000
MAX_MACS = 1_000_000


def check_import(data: bytes) -> bool:
    """Import bytes and return whether they are a model; any exception but a printable FerruleError is raised."""
    try:
        network = formats.load(data, name="fuzz")
    except FerruleError as error:
        _printable(error)
        return False
    try:
        network.validate()
    except FerruleError as error:
        _printable(error)
    else:
        _run(network)
    _round_trip(network)
    return True


def _run(network: Network) -> None:
    """Run a network that validation accepted, if it is small enough to run quickly."""
    elements = sum(tensor.info.elements for tensor in network.tensors)
    if elements < MAX_ELEMENTS and network.macs() < MAX_MACS:
        with np.errstate(all="ignore"):  # values of a damaged model overflow
            network.run(random_inputs(network))


def _printable(error: FerruleError) -> None:
    if not all(line.isprintable() for line in str(error).split("\n")) or len(str(error)) > 40_000:
        raise AssertionError(f"the message is not a list of printable lines: {error!r}")
    if "\n" in str(error) and len(error.problems) < 2:
        raise AssertionError(f"the message has several lines without several problems: {error!r}")


def _round_trip(network: Network) -> None:
    exported = to_tflite(network)
    differences = graph_differences(network, formats.load(exported, name="fuzz"))
    if differences:
        raise AssertionError(f"the round trip changed the network: {differences}")
