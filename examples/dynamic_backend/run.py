# SPDX-License-Identifier: Apache-2.0
"""Loads the sample backend from a folder and runs a small network on it.

python run.py [folder]    default: build, where `make` puts it
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.backends import CreationOptions
from ferrule.optimizer import optimize
from ferrule.runtime import Runtime

SCALE = Quantization.of(0.05, 3)


def build_network() -> Network:
    """Return a network of ADD, RELU and FULLY_CONNECTED, which the sample supports, and SOFTMAX, which it does not."""
    dice = np.random.default_rng(1)
    network = Network("example")
    for name in ("left", "right"):
        network.add_input(TensorInfo(name=name, shape=(1, 16), dtype=DataType.INT8, quantization=SCALE))
    network.add_add_layer("left", "right", quantization=SCALE, name="sum")
    network.add_relu_layer("sum", quantization=SCALE, name="relu")
    network.add_fully_connected_layer(
        "relu",
        dice.integers(-127, 128, (4, 16), dtype=np.int8),
        dice.integers(-500, 500, 4, dtype=np.int32),
        weights_quantization=Quantization.of(0.01),
        quantization=SCALE,
        name="dense",
    )
    network.add_softmax_layer("dense", name="probabilities")
    network.set_outputs(["probabilities", "sum"])  # so RELU is not fused into ADD
    return network


def main() -> None:
    """Run the network on the sample and on the reference, and compare the outputs."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    network = build_network()
    dice = np.random.default_rng(2)
    inputs = [dice.integers(-128, 128, (1, 16), dtype=np.int8) for _ in range(2)]
    with Runtime(CreationOptions(dynamic_backends_path=folder)) as runtime:
        for row in runtime.dynamic_report:
            print(f"{row.path.name}: {row.backend if row.accepted else f'{row.reason}: {row.message}'}")
        optimized = optimize(network, ["Sample", "CpuRef"], runtime.registry)
        for layer, assignment in optimized.assignment.items():
            print(f"{layer:>14}  {assignment.backend}")
        outputs = runtime.enqueue_workload(runtime.load_network(optimized), inputs)
    for info, output, expected in zip(network.outputs, outputs, network.run(inputs), strict=True):
        if not np.array_equal(output, expected):
            sys.exit(f"{info.name} is {output}, expected {expected}")
        print(f"{info.name} equals the reference in every bit")


if __name__ == "__main__":
    main()
