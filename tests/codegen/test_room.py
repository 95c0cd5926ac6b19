# SPDX-License-Identifier: Apache-2.0
"""What costs a layer nothing, since other layers need it anyway."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from chains import build, info

from ferrule import Job, inspect
from ferrule.backends.firmware import KernelCosts, LoweredOp
from ferrule.backends.target import Price
from ferrule.codegen.room import needed_bytes, worth
from ferrule.graph import DataType, Descriptor, Layer, LayerType, Quantization, TensorInfo
from ferrule.memory.request import Overlap
from ferrule.network import Network
from ferrule.operators.activation import Activation


def test_layers_without_c_overlap_their_inputs_as_far_as_possible() -> None:
    graph = build(
        [("x", 10), ("k", 4)],
        [(["x"], [("a", 30)]), (["a", "k"], [("b", 20)]), (["b", "a"], [("c", 60)])],
        ["c"],
    )
    graph.add_constant(info("w", 70), np.zeros(70, np.int8))
    layer = Layer("l3", LayerType.ADD, Descriptor(), inputs=("c", "w"), outputs=("d",))
    graph.add_layer(layer, [info("d", 6)])
    graph.set_outputs(["d"])
    assert needed_bytes(graph, ["l0", "l1", "l2", "l3"], {}) == {
        "l0": 10 + 4 + 30 - 10,  # x ends, k and a do not
        "l1": 4 + 30 + 20 - 4,  # k ends
        "l2": 30 + 20 + 60 - (30 + 20),  # a and b end
        "l3": 60 + 6 - 6,  # c ends; constants are elsewhere
    }
    assert needed_bytes(build([("x", 1)], [], ["x"]), [], {}) == {}


def test_the_order_counts() -> None:
    graph = build([("x", 8)], [(["x"], [("a", 2)]), (["x"], [("b", 6)]), (["a", "b"], [("c", 1)])], ["c"])
    assert needed_bytes(graph, ["l0", "l1", "l2"], {}) == {"l0": 10, "l1": 8 + 2 + 6 - 6, "l2": 2 + 6 + 1 - 1}
    assert needed_bytes(graph, ["l1", "l0", "l2"], {}) == {"l1": 14, "l0": 8 + 6 + 2 - 2, "l2": 8}


@pytest.mark.parametrize(
    ("op", "bytes_"),
    [
        (LoweredOp(kernel="apart", scratch_bytes=5), 10 + 6 + 5),
        (LoweredOp(kernel="over", overlaps=(Overlap(input="x", output="y", distance_bytes=2),)), 10 + 6 - 4),
        (LoweredOp(kernel="far", overlaps=(Overlap(input="x", output="y", distance_bytes=9),)), 10 + 6),
        (
            LoweredOp(kernel="back", overlaps=(Overlap(input="x", output="y", distance_bytes=None, backward_bytes=7),)),
            13,
        ),
        (
            LoweredOp(
                kernel="twice",
                overlaps=(
                    Overlap(input="x", output="y", distance_bytes=1),
                    Overlap(input="k", output="y", distance_bytes=0),
                ),
            ),
            10 + 6 - 5,  # k does not end
        ),
        (LoweredOp(kernel="view", view_of="x"), 10),
    ],
)
def test_layers_as_c_overlap_their_inputs_as_they_state(op: LoweredOp, bytes_: int) -> None:
    graph = build([("x", 10), ("k", 4)], [(["x", "k"], [("y", 6)])], ["y", "k"])
    assert needed_bytes(graph, ["l0"], {"l0": op}) == {"l0": bytes_ + 4}


def _total(needs: dict[str, int], chosen: dict[str, KernelCosts], price: Price) -> float:
    peak = max(*needs.values(), *(needs[layer] + each.scratch_bytes for layer, each in chosen.items()))
    codes = {each.code: each.code_bytes for each in chosen.values()}
    return sum(each.at(price, codes=codes) for each in chosen.values()) + (
        price.ram * peak + price.flash * sum(codes.values())
    )


def _least(needs: dict[str, int], costs: dict[str, Sequence[KernelCosts]], price: Price) -> float:
    return min(_total(needs, dict(zip(costs, each, strict=True)), price) for each in product(*costs.values()))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("code_bytes", [0, 40])
def test_no_choice_of_kernels_is_worth_more(seed: int, code_bytes: int) -> None:
    """Each layer then chooses for itself, as `choice` does, and still the whole is the best of all combinations.

    Code is left out one by one, so that with it the whole need not be the best; it never is worse than without.
    """
    random = np.random.default_rng(seed)
    needs = {f"l{index}": int(random.integers(0, 60)) for index in range(4)}
    costs: dict[str, Sequence[KernelCosts]] = {
        layer: [
            KernelCosts(
                instructions=int(random.integers(0, 300)),
                weight_bytes=int(random.integers(0, 30)),
                scratch_bytes=int(random.integers(0, 50)) * (number > 0),
                code=f"k{number}",
                code_bytes=code_bytes,
            )
            for number in range(3)
        ]
        for layer in needs
    }
    price = Price(ram=float(random.integers(0, 9)), flash=float(random.integers(0, 5)))
    room = worth({**needs, "other": 30}, costs, price)

    def chosen(codes: frozenset[str]) -> dict[str, KernelCosts]:
        return {
            layer: min(found, key=lambda each: each.at(price, room.peak_bytes - needs[layer], codes))
            for layer, found in costs.items()
        }

    needs["other"] = 30
    total = _total(needs, chosen(room.codes), price)
    assert max(needs[layer] + each.scratch_bytes for layer, each in chosen(room.codes).items()) <= room.peak_bytes
    if code_bytes:
        assert total <= _total(needs, chosen(frozenset({"k0", "k1", "k2"})), price)
    else:
        assert total == pytest.approx(_least(needs, costs, price))


def test_without_a_choice_the_peak_is_that_of_the_tensors() -> None:
    assert worth({}, {}, Price(ram=1)).peak_bytes == 0
    room = worth({"a": 7, "b": 9}, {"a": ()}, Price(ram=1))
    assert (room.peak_bytes, room.codes) == (9, frozenset())


def test_scratch_in_a_devices_own_memory_counts_as_none() -> None:
    network = Network("beside")
    source = TensorInfo(name="x", shape=(1, 12, 12, 16), dtype=DataType.INT8, quantization=Quantization.of(0.02, -128))
    output = network.add_depthwise_conv2d_layer(
        network.add_input(source),
        np.resize(np.arange(-60, 61, dtype=np.int8), (1, 3, 3, 16)),
        np.zeros(16, np.int32),
        padding="same",
        activation=Activation.RELU,
        weights_quantization=Quantization.of(0.01),
        quantization=Quantization.of(0.1, -128),
    )
    network.set_outputs([output])
    kernels = []
    for goal in ("balanced", "memory"):
        job = Job(board="mps2-an386", backends=("SoftNpu", "CpuAcc"), goal=goal)
        found = inspect(network, job, kernels=True).kernels
        assert found is not None
        kernels.append([(layer.backend, each.kernel) for layer in found for each in layer.kernels if each.chosen])
    assert ("SoftNpu", "depthwise_conv2d_3x3_by1_s8") in kernels[0]
    assert kernels[0] == kernels[1]
