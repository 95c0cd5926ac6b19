# SPDX-License-Identifier: Apache-2.0
"""The MLPerf Tiny models on every board, with both toolchains and both engines, compared with TensorFlow Lite Micro."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from covering import EXHAUSTIVE, covering
from numpy.testing import assert_array_equal
from oracle import edge_inputs, tflm

import ferrule
from ferrule.boards import board_names
from ferrule.errors import UnsupportedError
from ferrule.graph import Array
from ferrule.report import Verdict
from ferrule.testing.backends.comparison import random_inputs

INT8 = {"ad01_int8": 768, "kws_ref_model": 8_384, "pretrainedResnet_quant": 33_296, "vww_96_int8": 36_864}
"""Models, with the most activation memory in bytes that a plan with overlap may take."""
FLOAT = ("ad01_fp32", "pretrainedResnet", "vww_96_float")
BOARDS = ("mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505")
TOOLCHAINS = ("zig", "arm-none-eabi-gcc")
LARGE = {"pretrainedResnet_quant": ("mps2-an386", "mps2-an500"), "vww_96_int8": ("mps2-an385", "mps2-an505")}
"""Boards for the large models, which are all four boards together; `make nightly` runs each model on all of them."""
FLOAT_BOARDS = ("mps2-an385", "mps2-an500")
"""A board without and a board with a floating-point unit."""
LARGE_FLOAT = {
    ("pretrainedResnet", "mps2-an500", "arm-none-eabi-gcc"),
    ("vww_96_float", "mps2-an500", "zig"),
}
"""The runs of large models; `make nightly` takes all of them."""
ON_QEMU = {*zip(INT8, BOARDS[:3], strict=False), ("ad01_int8", "mps2-an505")}
"""QEMU takes six times as long as unicorn: one model per board, and the largest model by `make nightly` only."""

pytestmark = [pytest.mark.cc, pytest.mark.emu]


def need(toolchain: str, request: pytest.FixtureRequest) -> None:
    """Skip the test unless the toolchain is installed."""
    if toolchain == "arm-none-eabi-gcc":
        request.getfixturevalue("arm_gcc")


def samples(network: ferrule.Network) -> list[list[Array]]:
    return [random_inputs(network, seed=1), random_inputs(network, seed=2), *edge_inputs(network).values()]


@cache
def expected(path: Path) -> list[list[Array]]:
    """Return the outputs of TensorFlow Lite Micro for the file itself, by sample."""
    data = path.read_bytes()
    return [tflm(data, sample) for sample in samples(ferrule.load(path))]


def stacked(columns: list[list[Array]]) -> list[Array]:
    return [np.concatenate([row[index] for row in columns]) for index in range(len(columns[0]))]


def test_every_shipped_board_is_tested() -> None:
    assert {name for name in board_names() if name.startswith("mps2")} == set(BOARDS)


@covering(
    "model, board, toolchain",
    tuple(INT8),
    BOARDS,
    TOOLCHAINS,
    seed=1,
    sentinel=("ad01_int8", "mps2-an385", "zig"),
    gate=4,
    allowed=lambda model, board, _: EXHAUSTIVE or board in LARGE.get(model, BOARDS),
)
def test_int8_models_equal_tflm(
    models: Path, model: str, board: str, toolchain: str, request: pytest.FixtureRequest
) -> None:
    need(toolchain, request)
    path = models / f"{model}.tflite"
    network = ferrule.load(path)
    firmware = ferrule.compile(network, board=board, toolchain=toolchain)
    truth = stacked(expected(path))
    inputs = stacked(samples(network))
    counts = {}
    engines = ["unicorn"]
    if EXHAUSTIVE or (model, board) in ON_QEMU:
        request.getfixturevalue("qemu")
        engines.append("qemu")
    for engine in engines:
        report = firmware.run(inputs, engine=engine)
        assert report.verdict is Verdict.EXACT, engine
        for output, reference in zip(report.outputs, truth, strict=True):
            assert_array_equal(output, reference, err_msg=engine)
        ram = report.memory.ram
        assert report.memory.arena.activation_bytes <= INT8[model]
        assert ram.stack_used <= (ram.stack_bound or 0) <= 1.5 * ram.stack_used
        assert report.memory.arena.activation_certificate == "optimal"
        counts[engine] = report.document.count
    if board == "mps2-an386":
        checked = firmware.run(check_ownership=True)
        assert checked.verdict is Verdict.EXACT
        assert checked.document.ownership is not None
        assert checked.document.ownership.inferences == 1
    if "qemu" in counts:
        tick = counts["qemu"].resolution
        assert abs(counts["unicorn"].per_inference - counts["qemu"].per_inference) <= 20 * tick


@covering(
    "model, board, toolchain",
    FLOAT,
    BOARDS if EXHAUSTIVE else FLOAT_BOARDS,
    TOOLCHAINS,
    seed=2,
    gate=2,
    allowed=lambda *row: EXHAUSTIVE or row[0] == FLOAT[0] or row in LARGE_FLOAT,
)
def test_float_models_have_the_bits_of_their_own_c(
    models: Path, model: str, board: str, toolchain: str, request: pytest.FixtureRequest
) -> None:
    need(toolchain, request)
    network = ferrule.load(models / f"{model}.tflite")
    firmware = ferrule.compile(network, board=board, toolchain=toolchain)
    report = firmware.run(random_inputs(network, seed=3), engine="unicorn", timeout_s=300)
    assert report.verdict is Verdict.EXACT


@pytest.mark.parametrize("model", [FLOAT[0], *(pytest.param(name, marks=pytest.mark.nightly) for name in FLOAT[1:])])
def test_float_models_run_on_qemu(models: Path, qemu: str, model: str) -> None:
    network = ferrule.load(models / f"{model}.tflite")
    report = ferrule.compile(network, board="mps2-an386").run(random_inputs(network, seed=3), engine="qemu")
    assert report.verdict is Verdict.EXACT


def test_the_hybrid_model_is_refused_by_that_name(models: Path) -> None:
    with pytest.raises(UnsupportedError, match="hybrid"):
        ferrule.load(models / "kws_ref_model_float32.tflite")
