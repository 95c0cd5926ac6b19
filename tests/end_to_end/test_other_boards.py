# SPDX-License-Identifier: Apache-2.0
"""Boards other than the MPS2 images: a small model with both toolchains, and keyword spotting on each engine."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest
import small_networks
from compare import assert_arrays_equal
from covering import covering
from gate import some_of
from needs import require_module, require_program
from oracle import tflm

import ferrule
from ferrule.boards import board_names, load_board
from ferrule.emulation import engine
from ferrule.errors import FerruleError
from ferrule.report import Verdict
from ferrule.testing.backends.comparison import random_inputs

pytestmark = pytest.mark.emu
ENGINES = ("unicorn", "qemu")
RUNS = {
    name: tuple(each for each in ENGINES if engine(each).refuses(load_board(name)) is None)
    for name in board_names()
    if not name.startswith("mps2")
}
"""The engines that support each board."""


def need(name: str) -> None:
    """Skip the test unless the engine is installed."""
    if name == "qemu":
        require_program("qemu-system-arm", "apt-get install qemu-system-arm")
    else:
        require_module("unicorn", "pip install 'ferrule[run]'")


def test_every_other_board_runs_on_an_engine() -> None:
    assert all(RUNS.values()), RUNS
    assert (RUNS["microbit"], RUNS["mps3-an547"], RUNS["nrf52840dk"]) == (ENGINES, ("qemu",), ("unicorn",))


@covering(
    "board, engine_name, toolchain",
    tuple(RUNS),
    ENGINES,
    ("zig", "arm-none-eabi-gcc"),
    seed=4,
    gate=4,
    allowed=lambda board, engine_name, _: engine_name in RUNS[board],
)
def test_a_small_model(board: str, engine_name: str, toolchain: str, request: pytest.FixtureRequest) -> None:
    need(engine_name)
    if toolchain == "arm-none-eabi-gcc":
        request.getfixturevalue("arm_gcc")
    network = small_networks.dense()
    report = ferrule.compile(network, board=board, toolchain=toolchain).run(
        random_inputs(network, seed=1), engine=engine_name
    )
    assert report.verdict is Verdict.EXACT


@pytest.mark.parametrize(
    ("board", "backend"),
    some_of(
        list(product(["nrf52840dk", "nucleo_l4r5zi", "stm32f4_discovery", "stm32g0b1"], ["Woofles", "UartWoofles"])),
        [
            ("nrf52840dk", "Woofles"),
            ("nucleo_l4r5zi", "UartWoofles"),
            ("stm32f4_discovery", "UartWoofles"),
            ("stm32g0b1", "Woofles"),
        ],
    ),
)
def test_accelerators_on_the_bus_and_behind_a_uart(board: str, backend: str) -> None:
    need("unicorn")
    network = small_networks.dense()
    report = ferrule.compile(network, board=board, backends=[backend, "CpuAcc"]).run(random_inputs(network, seed=6))
    assert report.verdict is Verdict.EXACT
    assert backend in {layer.backend for layer in report.document.layers}


@pytest.mark.parametrize(
    ("board", "engine_name"),
    some_of(
        [(board, each) for board in RUNS for each in RUNS[board]],
        [("microbit", "unicorn"), ("mps3-an547", "qemu")],
    ),
)
def test_keyword_spotting_equals_tflm(models: Path, board: str, engine_name: str) -> None:
    need(engine_name)
    path = models / "kws_ref_model.tflite"
    network = ferrule.load(path)
    inputs = random_inputs(network, seed=4)
    report = ferrule.compile(network, board=board).run(inputs, engine=engine_name)
    assert report.verdict is Verdict.EXACT
    assert_arrays_equal(report.outputs, tflm(path.read_bytes(), inputs))


@pytest.mark.parametrize("toolchain", [pytest.param("zig", marks=pytest.mark.nightly), "arm-none-eabi-gcc"])
def test_a_core_without_vectors_has_the_same_results(
    models: Path, qemu: str, toolchain: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if toolchain == "arm-none-eabi-gcc":
        request.getfixturevalue("arm_gcc")
    folder = tmp_path / "without-vectors"
    shutil.copytree(load_board("mps3-an547").folder, folder)
    file = folder / "board.toml"
    text = file.read_text(encoding="utf-8")
    assert "mve = true" in text
    file.write_text(text.replace("mve = true", "mve = false"), encoding="utf-8")
    network = ferrule.load(models / "kws_ref_model.tflite")
    report = ferrule.compile(network, board=str(folder), toolchain=toolchain).run(
        random_inputs(network, seed=5), engine="qemu"
    )
    assert report.verdict is Verdict.EXACT
    assert not any("mve" in layer.kernel for layer in report.document.layers)


@pytest.mark.nightly
@pytest.mark.parametrize("engine_name", ["unicorn", "qemu"])
def test_weights_in_the_psram(engine_name: str, tmp_path: Path) -> None:
    """As docs/boards.md describes it for models with more than 4 MiB of weights."""
    need(engine_name)
    folder = tmp_path / "with-psram"
    shutil.copytree(load_board("mps2-an386").folder, folder)
    text = (folder / "board.toml").read_text(encoding="utf-8")
    for old, new in (
        ('[memories.psram]\nkind = "ram"', '[memories.psram]\nkind = "flash"'),
        ('weights = "ssram1"', 'weights = "psram"'),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "board.toml").write_text(text, encoding="utf-8")
    network = small_networks.dense()
    firmware = ferrule.compile(network, board=str(folder))
    weights = firmware.image.section(".ferrule_weights")
    assert weights is not None
    assert weights.address == 0x2100_0000
    assert firmware.run(random_inputs(network, seed=1), engine=engine_name).verdict is Verdict.EXACT


def test_unicorn_says_why_it_has_no_cortex_m55() -> None:
    network = small_networks.dense()
    with pytest.raises(FerruleError, match="unicorn cannot run board mps3-an547: unicorn has no cortex-m55") as caught:
        ferrule.compile(network, board="mps3-an547").run(random_inputs(network, seed=1), engine="unicorn")
    assert "qemu" in (caught.value.hint or "")
