# SPDX-License-Identifier: Apache-2.0
"""Several networks merged into one, so that they are compiled and run together, and several samples run together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ferrule import Firmware
from ferrule.graph import Array, Graph
from ferrule.network import Network


def merged(networks: Sequence[Graph], name: str = "merged") -> Network:
    """Return a network with the inputs, states, layers and outputs of all networks; names get a numbered prefix."""
    result = Network(name)
    outputs: list[str] = []
    for number, network in enumerate(networks):
        prefix = f"n{number}_"
        for info in network.inputs:
            result.add_input(replace(info, name=prefix + info.name))
        for state in network.states:
            source = replace(network.info(state.source), name=prefix + state.source)
            result.add_state(source, state.initial, name=prefix + state.name)
        for tensor in network.tensors:
            if tensor.data is not None:
                result.add_constant(replace(tensor.info, name=prefix + tensor.info.name), tensor.data)
        for layer in network.layers:
            renamed = replace(
                layer,
                name=prefix + layer.name,
                inputs=tuple(None if tensor is None else prefix + tensor for tensor in layer.inputs),
                outputs=tuple(prefix + tensor for tensor in layer.outputs),
            )
            infos = [replace(info, name=prefix + info.name) for info in network.output_infos(layer)]
            result.add_layer(renamed, infos)
        for state in network.states:
            result.set_state(prefix + state.name, prefix + state.result)
        outputs += [prefix + info.name for info in network.outputs]
    result.set_outputs(outputs)
    return result


def sample_outputs(
    firmware: Firmware, samples: Sequence[Sequence[Array]], engine: str = "unicorn"
) -> list[list[Array]]:
    """Return a firmware's outputs for each sample; the engine starts once for all of them."""
    inputs = [np.concatenate(arrays) for arrays in zip(*samples, strict=True)]
    outputs = [np.split(array, len(samples)) for array in firmware.run(inputs, engine=engine).outputs]
    return [list(arrays) for arrays in zip(*outputs, strict=True)]
