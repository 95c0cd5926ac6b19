# SPDX-License-Identifier: Apache-2.0
"""The network that a caller means."""

from __future__ import annotations

from os import PathLike

from ferrule.errors import FerruleError
from ferrule.formats import ModelFile, load
from ferrule.network import Network
from ferrule.record import recall

Models = list[Network] | list[Network | ModelFile] | tuple[Network | ModelFile, ...]
"""Several models for one firmware."""


def networks_of(models: Network | ModelFile | Models) -> list[Network]:
    """Return the networks of one or several models; raises as `network_of` does, and if a list is empty."""
    if not isinstance(models, (list, tuple)):
        return [network_of(models)]
    if not models:
        raise FerruleError("the list of models is empty, expected at least one")
    return [network_of(model) for model in models]


def network_of(model: Network | ModelFile) -> Network:
    """Return a network unchanged, and load anything else; raises as `load` does."""
    if isinstance(model, Network):
        recall(model)
        return model
    if isinstance(model, (str, PathLike, bytes, bytearray, memoryview)):
        return load(model)
    raise FerruleError(
        f"the model is of type {type(model).__name__}, expected a ferrule.Network, a path or bytes",
        hint="ferrule.load reads a .tflite or .onnx file, ferrule.from_torch a module, ferrule.Network builds one",
    )
