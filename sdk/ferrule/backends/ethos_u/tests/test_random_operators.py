# SPDX-License-Identifier: Apache-2.0
"""Random networks of one operator, compiled by Vela, have the results of the numpy kernels, or a known reason."""

from __future__ import annotations

import pytest
from needs import require_module
from vela_campaign import EXACT, SAMPLE, Case, RefusedError, cases, check, compile_in_process, valid_network
from vela_cases import KINDS, vela_case

from ferrule.backends.ethos_u.configuration import CONFIGURATIONS
from ferrule.formats import to_tflite
from ferrule.graph import DataType, LayerType
from ferrule.testing.backends.layer_cases import LAYER_TYPES

NAMES = [each.name for each in CONFIGURATIONS]
ON_THE_CORE = frozenset({"mean", "mean16", "reverse_v2"})
"""Kinds that Vela leaves to the core, always or for some parameters."""
OTHERWISE = frozenset({"leaky_relu16", "mul16", "softmax16", "sum"})
"""Kinds whose layers the backend refuses, because Vela computes some of them otherwise."""
NIGHTLY_SEEDS = 15


@pytest.fixture(autouse=True, scope="module")
def vela() -> None:
    require_module("ethosu", "pip install 'ferrule[ethos-u]'")


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_network_is_exact(kind: str) -> None:
    """Each kind on another configuration."""
    place = list(KINDS).index(kind)
    found = check(vela_case(kind, place), place, NAMES[place % len(NAMES)])
    allowed = ("CPU: ",) * (kind in ON_THE_CORE) + ("Vela 5.2 ",) * (kind in OTHERWISE)
    assert found == EXACT or found.startswith(allowed)


@pytest.mark.nightly
@pytest.mark.parametrize("configuration", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_networks_are_exact_or_explained(kind: str, configuration: str) -> None:
    for case in cases([kind], NIGHTLY_SEEDS, 0, first=1000):
        check(vela_case(case.kind, case.seed), case.seed, configuration)


@pytest.mark.nightly
@pytest.mark.parametrize("configuration", NAMES)
@pytest.mark.parametrize("type_", LAYER_TYPES)
def test_samples_of_an_operator_are_exact_or_explained(type_: LayerType, configuration: str) -> None:
    for dtype in (DataType.INT8, DataType.INT16):
        for seed in range(6):
            network = valid_network(Case(kind=SAMPLE, seed=seed, type=type_, dtype=dtype))
            if network is not None:
                check(network, seed, configuration)


def test_a_network_for_the_core_is_told_apart() -> None:
    with pytest.raises(RefusedError, match="Unsupported reverse mask"):
        compile_in_process(to_tflite(vela_case("reverse_v2", 0)), "ethos-u55-128")


def test_a_difference_without_a_reason_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    network = vela_case("conv", 0)
    run = type(network).run

    def wrong(*arguments: object, **keywords: object) -> list[object]:
        return [array ^ 1 for array in run(*arguments, **keywords)]

    monkeypatch.setattr(type(network), "run", wrong)
    with pytest.raises(AssertionError, match=r"values differ, by up to 1: $"):
        check(network, 0, "ethos-u55-128")
