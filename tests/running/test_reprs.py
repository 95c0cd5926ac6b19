# SPDX-License-Identifier: Apache-2.0
"""The repr of a value for users is one readable line, however large the value is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_networks

import ferrule
from ferrule import DataType, Quantization, TensorInfo
from ferrule.backends import BackendId, Device, PreCompiledDescriptor
from ferrule.boards import board_names, load_board
from ferrule.codegen import digest
from ferrule.firmware import divide, emit

Build = Callable[[ferrule.Network], ferrule.Firmware]
MOST_CHARACTERS = 300


def line(value: object) -> str:
    text = repr(value)
    assert "\n" not in text
    assert len(text) <= MOST_CHARACTERS, text
    return text


def large() -> ferrule.Network:
    """Return a network with many layers, inputs and outputs with long names."""
    network = ferrule.Network("name" * 100)
    for index in range(100):
        network.add_input(small_networks.int8_input(f"input_{index}_{'x' * 200}", 1, 4))
    names = [
        network.add_maximum_layer(info.name, network.inputs[0].name, name=f"layer_{index}_{'y' * 200}")
        for index, info in enumerate(network.inputs[1:])
    ]
    network.set_outputs(names)
    return network


def test_tensors() -> None:
    info = TensorInfo("x", (1, 32, 32, 3), DataType.INT8, quantization=Quantization.of(0.5, -3))
    assert line(info) == "TensorInfo('x', int8[1, 32, 32, 3], scale 0.5, zero point -3)"
    assert line(TensorInfo("s", (), DataType.FLOAT32)) == "TensorInfo('s', float32[])"
    scales = Quantization(scales=(0.25,) * 512, zero_points=(0,) * 512, axis=1)
    assert line(scales) == "Quantization(512 scales on axis 1)"
    wide = TensorInfo("w" * 1000, (3, 512), DataType.INT8, quantization=scales)
    assert line(wide).endswith("www', int8[3, 512], 512 scales on axis 1)")


def test_networks() -> None:
    network = small_networks.dense()
    assert line(network) == "<Network 'dense': 1 layers, int8[1, 6] to int8[1, 4]>"
    assert [line(tensor) for tensor in network.tensors if tensor.is_constant]
    assert line(large()).endswith("int8[1, 4], int8[1, 4], int8[1, 4], int8[1, 4], 95 more>")
    assert line(ferrule.Network("empty")) == "<Network 'empty': 0 layers, nothing to nothing>"


def test_what_becomes_of_a_network() -> None:
    network = small_networks.dense()
    assert line(divide(network)) == "<OptimizedNetwork 'dense': 1 layers, 1 on CpuAcc>"
    job = ferrule.Job(backends=["Woofles", "CpuAcc"])
    assert line(emit(network, job)).endswith("devices Woofles>")
    assert line(ferrule.inspect(network)).startswith("<Inspection 'dense': 1 layers, 24 MACs, ")
    many = large()
    for value in (divide(many), emit(many), ferrule.inspect(many, ferrule.Job())):
        line(value)


def test_jobs() -> None:
    assert line(ferrule.Job()) == ("Job(board='mps2-an386', toolchain='zig', backends='CpuAcc', platform='bare-metal')")
    job = ferrule.Job(
        board=load_board("mps2-an500"),
        devices=[Device(name=f"npu{index}", backend=BackendId("Woofles")) for index in range(50)],
        hints={f"layer_{index}": "Woofles" for index in range(500)},
        model_options={"CpuAcc": {"num_threads": 2}},
        out=Path("build/model"),
    )
    assert "board='mps2-an500'" in line(job)
    assert "50 devices, 500 hints, options of CpuAcc" in line(job)
    assert "out='build/model'" in line(job)


@pytest.mark.parametrize("name", board_names())
def test_boards(name: str) -> None:
    assert line(load_board(name)).startswith(f"<Board {name}: cortex-m")


@pytest.mark.cc
@pytest.mark.emu
def test_firmware_and_reports(built: Build) -> None:
    firmware = built(small_networks.dense())
    flash = f"flash {firmware.image.flash_bytes:,} B"
    assert line(firmware).startswith("<Firmware 'dense' for mps2-an386 by zig -Os: ")
    for value in (firmware, firmware.image):
        assert flash in line(value)
        assert str(firmware.elf) in repr(value)
    assert "for bare-metal" in line(firmware.project)
    report = firmware.run([np.zeros((3, 6), np.int8)])
    assert line(report).startswith("<RunReport 'dense' on mps2-an386 by unicorn: exact, 3 samples, ")
    assert line(report.document).startswith("<ReportDocument 'dense' ")
    assert flash in line(report)


def test_payloads_of_backends_are_not_shown() -> None:
    assert "payload" not in line(PreCompiledDescriptor(payload=bytes(100_000), label="big"))


def test_digests_do_not_depend_on_what_is_shown() -> None:
    """Firmware contains its model's digest, which may change only with the model."""
    assert digest(small_networks.dense()) == "a3cc6e219003159b36e78ce1ca03690ce7fcfc2e5082740b68475e4dc331ca46"
    network = small_networks.dense()
    (info,) = network.inputs
    assert info.quantization is not None
    other = ferrule.Network(network.name)
    other.add_input(
        replace(info, quantization=Quantization.of(info.quantization.scale * 2, info.quantization.zero_point))
    )
    other.set_outputs([info.name])
    same = ferrule.Network(network.name)
    same.add_input(info)
    same.set_outputs([info.name])
    assert digest(other) != digest(same)
