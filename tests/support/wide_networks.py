# SPDX-License-Identifier: Apache-2.0
"""A network divided between the core, Woofles and WideNpu, so that tensors cross between all pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from small_networks import SCALE, int8_input

from ferrule import Network, Quantization
from ferrule.backends import BackendId, Device
from ferrule.backends.registry import registry_with
from ferrule.firmware import Job
from ferrule.graph import Array

WOOFLES = Device(name="npu0", backend=BackendId("Woofles"))


def wide(*, bounce: bool = False) -> Device:
    """Return the device with 32-byte rules; with `bounce`, all of its tensors are in buffers of its own."""
    return Device(name="wide0", backend=BackendId("WideNpu"), binding={"bounce": int(bounce)})


def between() -> Network:
    """Return a network in which each of the three reads what each other one wrote.

    Tensors of 175 bytes fill neither a burst nor a line. The outputs are one of each writer.
    """
    network = Network("between")
    shape = (1, 5, 5, 7)
    for name in ("x", "y"):
        network.add_input(int8_input(name, *shape))
    network.add_maximum_layer("x", "y", name="high")  # wide0
    network.add_add_layer("high", "x", quantization=SCALE, name="sum")  # npu0
    network.add_tanh_layer("high", name="soft")  # the core, of wide0's
    network.add_relu_layer("sum", name="rectified")  # the core, of npu0's
    network.add_maximum_layer("sum", "sum", name="again")  # wide0, of npu0's
    network.add_reshape_layer("again", (1, 175), name="flat")
    network.add_reshape_layer("sum", (1, 175), name="flat_sum")
    network.add_mul_layer("flat", "flat_sum", quantization=Quantization.of(0.1), name="product")  # npu0
    network.add_maximum_layer("rectified", "sum", name="late")  # wide0, of the core's
    network.add_add_layer("soft", "late", quantization=SCALE, name="last")  # npu0, of the core's and wide0's
    network.set_outputs(["last", "late", "soft", "product"])
    return network


def job(board: str, *, bounce: bool = False, regions: Sequence[Sequence[str]] = ((), ())) -> Job:
    """Return the job that divides `between`; `regions` are the memories that npu0 and wide0 reach."""
    devices = (WOOFLES, wide(bounce=bounce))
    return Job(
        board=board,
        backends=("WideNpu", "Woofles", "CpuAcc"),
        devices=[replace(device, regions=tuple(names)) for device, names in zip(devices, regions, strict=True)],
        registry=registry_with([Path(__file__).parent / "wide_npu"]),
    )


def samples(seed: int = 0) -> list[Array]:
    """Return random inputs for `between`."""
    generator = np.random.default_rng(seed)
    return [generator.integers(-128, 128, (1, 5, 5, 7)).astype(np.int8) for _ in "xy"]
