# SPDX-License-Identifier: Apache-2.0
"""Random networks of one operator, compiled by Vela, have the results of the numpy kernels, or a known reason."""

from __future__ import annotations

import dataclasses

import pytest
import vela_legacy
from needs import require_module
from vela_campaign import (
    EXACT,
    SAMPLE,
    Case,
    RefusedError,
    cases,
    check,
    compile_in_process,
    run_campaign,
    valid_network,
)
from vela_cases import KINDS, vela_case
from vela_options import DRAWN, LEGACY, OptionRow, drawn, row, rows

from ferrule.backends.ethos_u.configuration import CONFIGURATIONS
from ferrule.backends.ethos_u.settings import OPTIONS
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
    """Each kind on another configuration, with other options."""
    place = list(KINDS).index(kind)
    configuration = NAMES[place % len(NAMES)]
    options = drawn(kind, place, configuration, legacy=False).arguments(configuration)
    found = check(vela_case(kind, place), place, configuration, *options)
    allowed = ("CPU: ",) * (kind in ON_THE_CORE) + ("Vela 5.2 ",) * (kind in OTHERWISE)
    assert found == EXACT or found.startswith(allowed)


@pytest.mark.nightly
@pytest.mark.parametrize("configuration", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_many_random_networks_are_exact_or_explained(kind: str, configuration: str) -> None:
    """With Vela's own options, and with others, by its older code generator, too."""
    report = run_campaign(list(cases([kind], NIGHTLY_SEEDS, 0, first=1000)), [configuration], rows=("", DRAWN))
    assert report.failures == []


@pytest.mark.nightly
@pytest.mark.parametrize("configuration", NAMES)
@pytest.mark.parametrize("type_", LAYER_TYPES)
def test_samples_of_an_operator_are_exact_or_explained(type_: LayerType, configuration: str) -> None:
    for dtype in (DataType.INT8, DataType.INT16):
        for seed in range(6):
            network = valid_network(Case(kind=SAMPLE, seed=seed, type=type_, dtype=dtype))
            if network is not None:
                check(network, seed, configuration)


def test_rows_have_each_option_that_changes_streams() -> None:
    """The limits and the code generator are combined with each memory mode that a product can have."""
    fields = {each.name for each in dataclasses.fields(OptionRow)} - {"core"}
    assert fields == {option.name for option in OPTIONS} - {"config_file", "fast_memory", "timeout_s"}
    for name, modes in (("ethos-u55-32", 4), ("ethos-u65-512", 8)):
        listed = rows(name)
        assert listed[0] == OptionRow()
        assert {row(str(each)) for each in listed} == set(listed)
        assert len({each.memory_mode for each in listed[1:]}) == modes
        assert len({(each.memory_mode, each.core) for each in listed[1:]}) == 2 * modes
        assert {drawn("conv", seed, name) for seed in range(len(listed))} == set(listed)
        assert not any(each.core == LEGACY for each in rows(name, legacy=False))


def test_a_row_of_unknown_options_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no option speed"):
        row("optimise=Size,speed=3")


def test_a_campaign_counts_by_rows() -> None:
    told = "memory_mode=Sram_Only,optimise=Size"
    report = run_campaign([Case(kind="add", seed=1)], ["ethos-u55-64"], rows=(told, "core=legacy", "default", ""))
    assert report.failures == []
    assert {name: dict(results) for name, results in report.rows.items()} == {
        name: {EXACT: 1} for name in (told, "core=legacy", "default", "Vela's own")
    }


@pytest.mark.parametrize(
    ("kind", "seed", "found"),
    [
        ("sub16", 3001, EXACT),
        ("transpose_conv", 3000, "Vela's older code generator pads a transposed convolution of stride 1 on the wrong"),
        ("mean16", 3000, "Vela's older code generator does not rescale a mean of one element"),
        ("lstm", 3000, "Vela's older code generator writes no states into raw files"),
        ("bilinear", 3112, "exact, and Vela's older code generator overlooks the last row and column"),
        ("elu", 3000, "CPU: Vela's older code generator"),
    ],
)
def test_streams_of_the_older_code_generator(kind: str, seed: int, found: str) -> None:
    """Its inputs are in an order of its own, and addresses of earlier networks do not matter."""
    assert check(vela_case(kind, seed), seed, "ethos-u55-64", vela_legacy.ARGUMENT).startswith(found)


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
