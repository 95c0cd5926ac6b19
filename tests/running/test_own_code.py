# SPDX-License-Identifier: Apache-2.0
"""float32 is as strict as integers: a board's bits are those of the firmware's C on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_networks
from flip_campaign import Flip, Flips, own_network

import ferrule
from ferrule._typing import override
from ferrule.backends import Backend, BackendId
from ferrule.backends.capability import FIRMWARE_FLOATS, CapabilityValue, firmware_float_options
from ferrule.backends.cpu_acc import CpuAcc
from ferrule.firmware.identification import read_identities
from ferrule.graph import DataType, LayerType, Quantization, TensorInfo
from ferrule.network import Network
from ferrule.network.samples import pattern_sample
from ferrule.report import Verdict
from ferrule.report.verdicts import judge
from ferrule.running import Firmware
from ferrule.running.own_code import NoOwnCodeError, OwnCode
from ferrule.running.references import References, has_own_flags

Build = Callable[..., Firmware]


def test_a_board_has_the_bits_of_the_firmwares_c(built: Build) -> None:
    report = built(own_network()).run()
    reference = report.document.reference
    assert report.verdict is Verdict.EXACT
    assert reference is not None
    assert reference.bits
    assert reference.bound is not None
    assert (reference.bound.layers, reference.bound.outside) == (5, 0)
    assert reference.bound.elements == 144 + 64 + 64 + 64 + 5


def test_integers_need_no_c(built: Build) -> None:
    assert built(small_networks.dense()).run().document.reference is None


@pytest.mark.usefixtures("zig")
def test_an_output_beside_a_large_one_is_judged_by_its_own_size(tmp_path: Path) -> None:
    flips = Flips(own_network(), "mps2-an385", tmp_path)  # without FPU, the weights keep the order of the model
    weights = next(name for name in flips.places if flips.shape(name) == (5, 64))
    found = flips.judge(Flip(tensor=weights, element=3, bit=31))  # the sign of a weight of the output of magnitude 1
    assert found.beyond
    assert (found.verdict, found.by_bound) == (Verdict.DIFFERENT, Verdict.DIFFERENT)
    judged = (flips.judge(Flip(tensor=weights, element=4 * 64 + 3, bit=bit)) for bit in range(8))  # of that of 1e8
    found = next(each for each in judged if each.changed)
    assert not found.beyond
    assert (found.verdict, found.by_bound) == (Verdict.DIFFERENT, Verdict.WITHIN_BOUND)


def test_other_code_may_be_within_its_bounds(built: Build) -> None:
    firmware = built(own_network())
    (build,) = read_identities(firmware.image)
    sample = pattern_sample(firmware.network.inputs)
    for stated, wanted in ((build, Verdict.DIFFERENT), (replace(build, compiler="other 1"), Verdict.WITHIN_BOUND)):
        (expected,) = References(firmware, stated).of([(sample, True)])
        assert expected.own is not None
        assert judge(expected.own, expected)[0] is Verdict.EXACT
        near = [np.nextafter(array, np.float32(np.inf)) for array in expected.own]
        assert judge(near, expected)[0] is wanted
        assert judge([array + np.abs(array) for array in expected.own], expected)[0] is Verdict.DIFFERENT


def test_the_widest_bound_of_other_code_is_told(built: Build) -> None:
    firmware = built(own_network())
    sample, (build,) = pattern_sample(firmware.network.inputs), read_identities(firmware.image)
    document = firmware.run().document
    assert document.reference is not None
    assert document.reference.widest is None
    references = References(firmware, replace(build, compiler="other 1"))
    (expected,) = references.of([(sample, True)])
    reference = references.noted(document).reference
    assert reference is not None
    assert expected.bounded[0].error is not None
    assert reference.widest == expected.bounded[0].error.max() > 0
    assert f"(the widest of an output is {reference.widest:.3g})" in reference.text


def test_what_a_build_states_decides(built: Build) -> None:
    (build,) = read_identities(built(own_network()).image)
    assert has_own_flags(build)
    assert not has_own_flags(None)
    assert not has_own_flags(replace(build, flags="-mcpu=cortex-m4 -Ofast"))
    assert not has_own_flags(replace(build, compiler=""))
    assert not has_own_flags(replace(build, platform="library"))


def test_c_outside_its_bounds_is_different_however_equal_the_board_is(built: Build) -> None:
    other = own_network(first=1.0)
    report = replace(built(own_network()), network=other).run()
    assert report.verdict is Verdict.DIFFERENT
    assert all(sample.verdict is Verdict.EXACT for sample in report.samples)
    bound = report.document.reference and report.document.reference.bound
    assert bound is not None
    assert bound.first == other.layers[0].name
    assert "outside its bounds in" in bound.text


class Silent(CpuAcc):
    """A core that does not say with which options it computes the firmware's floats."""

    @override
    def capabilities(self) -> Mapping[str, CapabilityValue]:
        return {name: value for name, value in super().capabilities().items() if name != FIRMWARE_FLOATS}


class SilentSource:
    """A source of that core alone."""

    def create(self, name: str, /) -> Backend:
        assert name == CpuAcc.id
        return Silent()

    def known_ids(self) -> list[BackendId]:
        return [CpuAcc.id]


def test_without_the_bits_nothing_is_pretended(built: Build) -> None:
    firmware = built(own_network())
    with pytest.raises(NoOwnCodeError, match="backend CpuAcc states no host face"):
        OwnCode(firmware.optimized, SilentSource(), network=firmware.network)


def test_options_are_pairs() -> None:
    assert firmware_float_options({}) is None
    assert firmware_float_options({FIRMWARE_FLOATS: ""}) == {}
    assert firmware_float_options({FIRMWARE_FLOATS: "a=b c=d"}) == {"a": "b", "c": "d"}
    for wrong in ("a", "=b", "a=", 1):
        with pytest.raises(ValueError, match="expected name=value"):
            firmware_float_options({FIRMWARE_FLOATS: wrong})


def test_floats_behind_a_stream_of_integers(zig: str) -> None:
    network, generator = Network("stream"), np.random.default_rng(3)
    info = TensorInfo("x", (1, 32, 32, 3), DataType.INT8, quantization=Quantization.of(0.05))
    source = network.add_input(info)
    for channels, given in ((16, 3), (16, 16), (2, 16)):
        source = network.add_conv2d_layer(
            source,
            generator.integers(-127, 128, (channels, 3, 3, given)).astype(np.int8),
            weights_quantization=Quantization.of(0.01),
            quantization=Quantization.of(0.5),
        )
    dense = network.add_fully_connected_layer(
        network.add_reshape_layer(network.add_dequantize_layer(source), (1, 1352)),
        generator.normal(0, 0.3, (3, 1352)).astype(np.float32),
    )
    network.set_outputs([dense])
    firmware = ferrule.compile(network, board="mps2-an386", toolchain=zig, goal="memory")
    assert any(layer.type is LayerType.PRE_COMPILED for layer in firmware.optimized.graph.layers)
    report = firmware.run()
    assert report.verdict is Verdict.EXACT
    assert report.document.reference is not None
    assert report.document.reference.bound is not None
    assert (report.document.reference.bound.layers, report.document.reference.bound.outside) == (3, 0)
