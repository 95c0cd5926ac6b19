# SPDX-License-Identifier: Apache-2.0
"""Random networks as classes of both targets, each layer with exact inputs, compared with numpy."""

from __future__ import annotations

from pathlib import Path

import hypothesis.strategies as st
import pytest
from acl_programs import build_many, run_stepwise
from hypothesis import HealthCheck, Phase, given, settings
from needs import require_acl

from ferrule.codegen.acl import generate_class, supported
from ferrule.codegen.acl.rows import AclOptions
from ferrule.graph import DataType
from ferrule.network import Network
from ferrule.network.samples import pattern
from ferrule.report.document import Verdict
from ferrule.scratch import ScratchFolder
from ferrule.testing.backends.random_networks import random_network

PER_PROGRAM = 25
GATE = 8
NIGHTLY = 200
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Without shrinking, each step of which would build a program."""
TARGETS = ("arm-gpu-c++", "arm-cpu-c++")


def is_possible(network: Network) -> bool:
    """Return whether the network can become a class: all layers have rows, and no output is an input."""
    options = AclOptions(version=require_acl().version)
    inputs = {info.name for info in network.inputs}
    return (
        bool(network.layers)
        and not any(supported(network, layer, options) for layer in network.layers)
        and not any(info.name in inputs or network.tensor(info.name).is_constant for info in network.outputs)
    )


def networks(count: int, dtype: DataType = DataType.FLOAT32) -> st.SearchStrategy[list[Network]]:
    """Return lists of different networks."""
    drawn = st.builds(random_network, st.integers(0, 100_000), st.integers(1, 8), st.just(dtype)).filter(is_possible)
    return st.lists(drawn, min_size=count, max_size=count)


def check(networks_: list[Network], folder: Path) -> None:
    """Build a program of all networks, alternately for one target and the other, and run each."""
    options = AclOptions(version=require_acl().version)
    artifacts = [
        generate_class(network, target=TARGETS[index % 2], name=f"Random{index}", options=options)
        for index, network in enumerate(networks_)
    ]
    program = build_many(artifacts, folder)
    for index, network in enumerate(networks_):
        comparisons = run_stepwise(
            program, f"Random{index}", network, {info.name: pattern(info) for info in network.inputs}
        )
        wrong = [each for each in comparisons if each.verdict is Verdict.DIFFERENT]
        assert not wrong, network.name


@pytest.mark.nightly
@settings(max_examples=1, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(networks_=networks(GATE))
def test_random_networks_are_the_references(networks_: list[Network]) -> None:
    with ScratchFolder() as scratch:
        check(networks_, scratch.path / "program")


@pytest.mark.nightly
@settings(max_examples=2, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(networks_=networks(PER_PROGRAM, DataType.INT8))
def test_many_random_int8_networks_are_the_references(networks_: list[Network]) -> None:
    with ScratchFolder() as scratch:
        check(networks_, scratch.path / "program")


@pytest.mark.nightly
@settings(max_examples=NIGHTLY // PER_PROGRAM, suppress_health_check=list(HealthCheck), phases=PHASES)
@given(networks_=networks(PER_PROGRAM))
def test_many_random_networks_are_the_references(networks_: list[Network]) -> None:
    with ScratchFolder() as scratch:
        check(networks_, scratch.path / "program")
