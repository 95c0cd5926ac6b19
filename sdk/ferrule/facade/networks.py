# SPDX-License-Identifier: Apache-2.0
"""The network that a caller means."""

from __future__ import annotations

from os import PathLike

from ferrule.errors import FerruleError
from ferrule.formats import ModelFile, load
from ferrule.network import Network


def network_of(model: Network | ModelFile) -> Network:
    """Return a network unchanged, and load anything else; raises as `load` does."""
    if isinstance(model, Network):
        return model
    if isinstance(model, (str, PathLike, bytes, bytearray, memoryview)):
        return load(model)
    raise FerruleError(
        f"the model is of type {type(model).__name__}, expected a ferrule.Network, a path or bytes",
        hint="ferrule.load reads a .tflite file, ferrule.Network builds a network by hand",
    )
