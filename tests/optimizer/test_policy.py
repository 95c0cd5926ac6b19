# SPDX-License-Identifier: Apache-2.0
"""The policy of a backend: subgraphs that are not worth their transfer go to the next backends, with the reason."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from optimizer_mocks import backend, by_name, floats, line, registry, takes, takes_names

from ferrule import load
from ferrule._typing import override
from ferrule.backends import Backend, BackendId, Device, Policy
from ferrule.backends.capability import ALL_OR_NOTHING
from ferrule.backends.target import Target
from ferrule.firmware import Job, divide
from ferrule.graph import Graph, LayerType, SubgraphView
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.optimizer.partition import extract_subgraphs
from ferrule.optimizer.policy import too_small

B = backend("B")
PLAIN = OptimizerOptions(simplify=False)


def choosy(*arguments: Any, policy: Policy, **keywords: Any) -> type[Backend]:  # noqa: ANN401 - as backend()
    """Return a mock backend called Npu with a policy."""

    class Choosy(backend("Npu", *arguments, **keywords)):  # type: ignore[misc]
        @override
        def policy(self, target: Target) -> Policy:
            return policy

    return Choosy


def divided(
    graph: Graph, npu: type[Backend], *others: type[Backend], options: OptimizerOptions = PLAIN
) -> OptimizedNetwork:
    return optimize(graph, [npu.id, *(other.id for other in others)], registry(npu, *others), options)


def owners(result: OptimizedNetwork) -> str:
    """Return the first letters of the layers' backends, in order."""
    return "".join(given.backend[0] for name, given in result.assignment.items() if not name.startswith("["))


def islands(result: OptimizedNetwork, name: str = "Npu") -> int:
    mine = {layer for layer, given in result.assignment.items() if given.backend == name}
    return len(extract_subgraphs(result.graph, mine))


def test_a_subgraph_with_too_few_layers_goes_to_the_next_backend() -> None:
    npu = choosy(takes(LayerType.RELU), policy=Policy(least_layers=2))
    result = divided(line("a", "tanh1", "b", "c", "tanh2", "d"), npu, B)
    assert owners(result) == "BBNNBB"
    reason = "its subgraph has 1 layer, fewer than 2"
    assert result.refusals["a", BackendId("Npu")] == f"its policy: {reason}"
    assert f"layer 'a' is left by Npu to the next backend: {reason}" in result.warnings


def test_the_next_backend_has_a_policy_of_its_own() -> None:
    second = type("Second", (choosy(policy=Policy(least_layers=3)),), {"id": BackendId("Second")})
    npu = choosy(takes(LayerType.RELU), policy=Policy(least_layers=2))
    assert owners(divided(line("a", "tanh", "b", "c"), npu, second, B)) == "BBNN"
    assert owners(divided(line("a", "tanh", "tanh2", "b", "c"), npu, second, B)) == "SSSNN"


def test_a_subgraph_that_nothing_else_supports_stays_whole() -> None:
    npu = choosy(takes(LayerType.RELU), policy=Policy(least_layers=3))
    result = divided(line("a", "b", "tanh"), npu, backend("Tanhs", takes_names(["b", "tanh"])))
    assert owners(result) == "NNT"
    assert result.warnings == (
        "layer 'a' and 1 more are kept on Npu, though its subgraph has 2 layers, fewer than 3: "
        "no other backend supports 'a'",
    )
    assert not any(layer == "a" for layer, _ in result.refusals)


def test_a_hint_and_the_lack_of_fallback_are_stronger() -> None:
    npu = choosy(policy=Policy(least_layers=9))
    hinted = OptimizerOptions(simplify=False, hints={"b": "Npu"})
    assert owners(divided(line("a", "b"), npu, B, options=hinted)) == "NN"
    assert owners(divided(line("a", "b"), npu, B, options=OptimizerOptions(simplify=False, fallback=False))) == "NN"
    whole = choosy(policy=Policy(least_layers=9), capabilities={ALL_OR_NOTHING: True})
    assert owners(divided(line("a", "b"), whole, B)) == "NN"
    assert owners(divided(line("a", "b"), npu, B)) == "BB"


def test_what_is_left_over_after_a_failure_is_judged_by_the_next_backend() -> None:
    npu = choosy(optimise=by_name, policy=Policy(least_layers=2))
    second = type("Second", (choosy(policy=Policy(least_layers=2)),), {"id": BackendId("Second")})
    result = divided(line("a", "unoptimizable"), npu, second, B)
    assert owners(result) == "NB"


@pytest.mark.parametrize(("base", "expected"), [(1, "NN"), (2, "BB")])
def test_the_policy_may_depend_on_the_device(base: int, expected: str) -> None:
    class ByDevice(backend("Npu")):  # type: ignore[misc]
        @override
        def policy(self, target: Target) -> Policy:
            return Policy(least_layers=2 if target.device.binding["base"] == 1 else 3)

    device = Device(name="npu0", backend=BackendId("Npu"), binding={"base": base})
    result = divided(line("a", "b"), ByDevice, B, options=OptimizerOptions(simplify=False, devices=(device,)))
    assert owners(result) == expected


@pytest.mark.parametrize(
    ("enough", "more", "reason"),
    [
        (Policy(least_layers=1), Policy(least_layers=2), "1 layer, fewer than 2"),
        (Policy(least_macs=16), Policy(least_macs=17), "16 MACs, fewer than 17"),
        (
            Policy(macs_per_byte=0.5),
            Policy(macs_per_byte=0.53125),
            "16 MACs and moves 32 B, fewer than 0.53125 MACs per byte",
        ),
    ],
)
def test_what_reaches_a_limit_is_not_too_small(enough: Policy, more: Policy, reason: str) -> None:
    network = Network("square")
    network.set_outputs(
        [network.add_fully_connected_layer(network.add_input(floats("x")), np.ones((4, 4), np.float32))]
    )
    view = SubgraphView.of(network, [layer.name for layer in network.layers])
    assert too_small(view, enough) == ""
    assert too_small(view, more) == f"its subgraph has {reason}"


@pytest.mark.parametrize(
    ("policy", "left", "reason"),
    [
        (Policy(), 6, ""),
        (Policy(least_macs=1_000), 5, "its subgraph has 768 MACs, fewer than 1,000"),
        (Policy(least_layers=2), 0, "its subgraph has 1 layer, fewer than 2"),
        (Policy(macs_per_byte=20), 5, "its subgraph has 768 MACs and moves 76 B, fewer than 20 MACs per byte"),
        (
            Policy(macs_per_byte=35.5),
            1,
            "its subgraph has 512,000 MACs and moves 16,000 B, fewer than 35.5 MACs per byte",
        ),
    ],
)
def test_kws_on_an_npu_of_convolutions(models: Path, policy: Policy, left: int, reason: str) -> None:
    npu = choosy(takes(LayerType.CONV_2D, LayerType.FULLY_CONNECTED), policy=policy)
    result = optimize(load(models / "kws_ref_model.tflite"), ["Npu", "B"], registry(npu, B), OptimizerOptions())
    assert islands(result) == left
    assert reason in " ".join(result.warnings)
    assert bool(result.warnings) is bool(reason)


@pytest.mark.parametrize(("options", "left"), [({}, 6), ({"macs_per_byte": 35.5}, 1), ({"least_layers": 2}, 0)])
def test_users_set_the_policy_of_woofles(models: Path, options: dict[str, int | float], left: int) -> None:
    job = Job(backends=("Woofles", "CpuAcc"), model_options={"Woofles": options})
    divided = divide(load(models / "kws_ref_model.tflite"), job)
    assert islands(divided, "Woofles") == left


def test_the_options_of_a_policy_have_its_fields_and_defaults() -> None:
    policy = Policy(least_layers=2, least_macs=3, macs_per_byte=4)
    options = {option.name: option.default for option in policy.model_options()}
    assert list(options) == [field.name for field in fields(Policy)]
    assert Policy.of(options) == policy
    assert Policy.of({"other": True}) == Policy()
    assert [str(type(value).__name__) for value in options.values()] == ["int", "int", "float"]
