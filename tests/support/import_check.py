# SPDX-License-Identifier: Apache-2.0
"""Checks that hold for the import of arbitrary bytes."""

from __future__ import annotations

import numpy as np
from compare import graph_differences
from oracle import random_inputs

from ferrule import formats
from ferrule.errors import FerruleError
from ferrule.formats import to_tflite
from ferrule.network import Network

MAX_ELEMENTS = 100_000
MAX_MACS = 1_000_000


def check_import(data: bytes) -> bool:
    """Import bytes and return whether they are a model; any exception but a one-line FerruleError is raised."""
    try:
        network = formats.load(data, name="fuzz")
    except FerruleError as error:
        _one_line(error)
        return False
    try:
        network.validate()
    except FerruleError as error:
        _one_line(error)
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


def _one_line(error: FerruleError) -> None:
    if not str(error).isprintable() or len(str(error)) > 20_000:
        raise AssertionError(f"the message is not one printable line: {error!r}")


def _round_trip(network: Network) -> None:
    exported = to_tflite(network)
    differences = graph_differences(network, formats.load(exported, name="fuzz"))
    if differences:
        raise AssertionError(f"the round trip changed the network: {differences}")
