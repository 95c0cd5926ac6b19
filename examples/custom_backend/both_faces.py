# SPDX-License-Identifier: Apache-2.0
"""Runs a network on a custom backend, step by step: see README.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import ferrule
from ferrule import DataType, TensorInfo
from ferrule.backends import registry_with
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime


def main() -> None:
    """Add two tensors on the imaginary device, on this machine and on an emulated board."""
    # 1 to 4: a network, its layers, their connections and shapes
    network = ferrule.Network("addition")
    for name in ("input1", "input2"):
        network.add_input(TensorInfo(name=name, shape=(3, 4), dtype=DataType.FLOAT32))
    network.set_outputs([network.add_add_layer("input1", "input2", name="add")])

    registry = registry_with([Path(__file__).parent / "my_custom"])
    with Runtime(registry=registry) as runtime:
        # 5: the backend replaces the addition by a pre-compiled object
        optimized = optimize(network, ["MyCustom"], runtime.registry)
        print("layers:", [f"{layer.name}: {layer.type}" for layer in optimized.graph.layers])

        # 6 and 7: workloads, memory and handles are created once, when the network is loaded
        number = runtime.load_network(optimized)

        # 8 and 9: the workloads run, and the result is in the caller's own array
        first = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
        output = np.empty((3, 4), np.float32)
        runtime.enqueue_workload(number, [first, 100 * first], [output])
        print("on the host:", output.ravel().tolist())

    # the same network as firmware: the folder's C is compiled with it
    report = ferrule.compile(network, backends=["MyCustom"], registry=registry).run([first, 100 * first])
    print("on the board:", report.outputs[0].ravel().tolist(), str(report.verdict))


if __name__ == "__main__":
    main()
