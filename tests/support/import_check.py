# SPDX-License-Identifier: Apache-2.0
"""What must hold for the import of any bytes whatsoever."""

from __future__ import annotations

from compare import graph_differences

from ferrule.errors import FerruleError
from ferrule.exporters import to_tflite
from ferrule.importers import load_tflite
from ferrule.network import Network


def check_import(data: bytes) -> bool:
    """Import bytes; True if they are a model. Anything but a network or one line of FerruleError is raised."""
    try:
        network = load_tflite(data, name="fuzz")
    except FerruleError as error:
        _one_line(error)
        return False
    try:
        network.validate()
        network.macs()
    except FerruleError as error:
        _one_line(error)
    _round_trip(network)
    return True


def _one_line(error: FerruleError) -> None:
    if not str(error).isprintable() or len(str(error)) > 20_000:
        raise AssertionError(f"the message is not one printable line: {error!r}")


def _round_trip(network: Network) -> None:
    exported = to_tflite(network)
    differences = graph_differences(network, load_tflite(exported, name="fuzz"))
    if differences:
        raise AssertionError(f"the round trip changed the network: {differences}")
