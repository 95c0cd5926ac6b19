# SPDX-License-Identifier: Apache-2.0
"""Networks divided between the core and two SoftNpu devices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from small_networks import SCALE, int8_input

from ferrule import Network, Quantization
from ferrule.backends import BackendId, Device
from ferrule.codegen import Artifact
from ferrule.firmware import Job, emit
from ferrule.graph import Array

NPU0 = Device(name="npu0", backend=BackendId("SoftNpu"), binding={"memory_bytes": 4096})
NPU1 = Device(name="npu1", backend=BackendId("SoftNpu"), binding={"memory_bytes": 2048, "activation_lead": 2})
POOL = tuple(
    Device(name=f"npu{index}", backend=BackendId("SoftNpu"), binding={"memory_bytes": 4096}, pool=True)
    for index in range(2)
)
HINTS = {
    "a": "SoftNpu/npu0",
    "b": "SoftNpu/npu0",
    "d": "SoftNpu/npu1",
    "flat": "SoftNpu/npu1",
    "dense": "SoftNpu/npu1",
    "late": "SoftNpu/npu1",
    "h": "SoftNpu/npu0",
}
"""The remaining layers run on the core."""


def crossing() -> Network:
    """Return a network whose tensors cross between all pairs of the core and the devices.

    The input is `x` [1, 6, 6, 4]; the outputs are `h` [1, 6, 6, 4], written by npu0, and `late` [1, 5], written by
    npu1. `a` goes from npu0 to npu1 and stays in npu0 while the core computes `c`. npu1 runs a reshape, and runs again
    after the core's `likely`.
    """
    generator = np.random.default_rng(4)
    network = Network("crossing")
    network.add_input(int8_input("x", 1, 6, 6, 4))
    network.add_conv2d_layer(
        "x",
        generator.integers(-127, 128, (4, 3, 3, 4), dtype=np.int8),
        generator.integers(-300, 300, 4, dtype=np.int32),
        weights_quantization=Quantization.of(0.02),
        quantization=SCALE,
        padding="same",
        name="a",
    )
    network.add_maximum_layer("a", "x", name="b")
    network.add_relu_layer("b", name="c")
    network.add_add_layer("c", "a", quantization=SCALE, name="d")
    network.add_reshape_layer("d", (1, 144), name="flat")
    network.add_fully_connected_layer(
        "flat",
        generator.integers(-127, 128, (5, 144), dtype=np.int8),
        generator.integers(-300, 300, 5, dtype=np.int32),
        weights_quantization=Quantization.of(0.02),
        quantization=SCALE,
        name="dense",
    )
    network.add_softmax_layer("dense", name="likely")
    network.add_add_layer("likely", "likely", quantization=SCALE, name="late")
    network.add_minimum_layer("a", "c", name="h")
    network.set_outputs(["h", "late"])
    return network


def job(hints: Mapping[str, str] = HINTS, devices: tuple[Device, ...] = (NPU0, NPU1)) -> Job:
    """Return the job that divides `crossing`."""
    return Job(backends=("CpuAcc",), hints=hints, devices=devices)


def artifact(devices: tuple[Device, ...] = (NPU0, NPU1), hints: Mapping[str, str] = HINTS) -> Artifact:
    """Return the C generated for `crossing`."""
    return emit(crossing(), job(hints, devices))


def sample(seed: int = 0) -> Array:
    """Return a random input for `crossing`."""
    return np.random.default_rng(seed).integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)


BRANCHES = (("common", "join"), ("npu0", "npu1", "npu2"), ("core0", "core1"))
"""The layers of `two_branches`: those before and after both branches, that of the device, and that of the core."""
BRANCH_HINTS = dict.fromkeys((*BRANCHES[0], *BRANCHES[2]), "CpuAcc") | dict.fromkeys(BRANCHES[1], "Woofles")


def two_branches() -> Network:
    """Return a network with a branch for the device and one for the core, which take about the same time."""
    generator = np.random.default_rng(3)
    network = Network("branches")
    network.add_input(int8_input("x", 1, 12, 12, 8))
    network.add_relu_layer("x", name="common")

    def convolution(source: str, name: str, size: int) -> str:
        channels = network.info(source).shape[3]
        return network.add_conv2d_layer(
            source,
            generator.integers(-127, 128, (8, size, size, channels), dtype=np.int8),
            generator.integers(-300, 300, 8, dtype=np.int32),
            weights_quantization=Quantization.of(0.02),
            quantization=SCALE,
            padding="same",
            name=name,
        )

    device = convolution(convolution(convolution("common", "npu0", 5), "npu1", 3), "npu2", 5)
    core = network.add_tanh_layer(convolution("common", "core0", 1), name="core1")
    network.add_add_layer(device, core, quantization=SCALE, name="join")
    network.set_outputs(["join"])
    return network
