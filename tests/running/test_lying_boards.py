# SPDX-License-Identifier: Apache-2.0
"""Boards that lie over the link: none of them is a success, and each is told as what it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import lying_boards
import numpy as np
import pytest
import small_networks
from lying_boards import DIFFERENT, REFUSED, HonestBoard
from needs import require_module

import ferrule
from ferrule import Firmware, Verdict
from ferrule.cli import main
from ferrule.emulation import EngineOptions
from ferrule.emulation.serial import engine as serial
from ferrule.errors import FerruleError
from ferrule.formats import to_tflite
from ferrule.link import LinkSession
from ferrule.report import RunReport
from ferrule.running import session

SAMPLES = {
    "left": np.arange(12, dtype=np.int8).reshape(2, 2, 3),
    "right": np.array([[[5, -6, 7]], [[-8, 9, 40]]], np.int8),
}


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    require_module("ziglang", "pip install 'ferrule[run]'")
    network = ferrule.load(to_tflite(small_networks.two_by_two()), "two by two")  # a file has no names of layers
    return ferrule.compile(network, out=tmp_path_factory.mktemp("lies") / "project")


Plug = Callable[[Callable[[Firmware], HonestBoard], Firmware], None]


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Plug:
    """A function that connects a board to every serial port."""

    def plugged(board: Callable[[Firmware], HonestBoard], firmware: Firmware) -> None:
        monkeypatch.setattr(serial, "SerialChannel", lambda *_, **__: board(firmware))
        monkeypatch.setattr(session, "LinkSession", partial(LinkSession, timeout_s=0.001, retries=1))

    return plugged


def run(firmware: Firmware) -> RunReport:
    return firmware.run(SAMPLES, engine="serial", options=EngineOptions(port="any"), timeout_s=0.01)


@pytest.mark.parametrize("board", [HonestBoard, lying_boards.OlderBoard])
def test_an_honest_board_is_exact(firmware: Firmware, plug: Plug, board: type[HonestBoard]) -> None:
    plug(board, firmware)
    report = run(firmware)
    assert report.verdict is Verdict.EXACT
    assert (report.document.evidence.samples, report.document.evidence.numbers) == (2, 24)


@pytest.mark.parametrize("lie", DIFFERENT)
def test_wrong_answers_differ(firmware: Firmware, plug: Plug, lie: str) -> None:
    plug(DIFFERENT[lie], firmware)
    assert run(firmware).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize("lie", REFUSED)
def test_contradictions_are_refused(firmware: Firmware, plug: Plug, lie: str) -> None:
    board, said = REFUSED[lie]
    plug(board, firmware)
    with pytest.raises(FerruleError, match=said):
        run(firmware)


def test_nan_for_numbers_differs(plug: Plug, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    firmware = ferrule.compile(small_networks.float_dense(), out=tmp_path / "project")
    plug(lying_boards.NoNumber, firmware)
    assert firmware.run(engine="serial", options=EngineOptions(port="any")).verdict is Verdict.DIFFERENT


def test_a_board_without_the_self_test_that_was_built(plug: Plug, tmp_path: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    firmware = ferrule.compile(small_networks.two_by_two(), out=tmp_path / "project", self_test=True)
    plug(HonestBoard, firmware)
    with pytest.raises(FerruleError, match="the firmware on the board has no self-test, and the one that was built"):
        run(firmware)


@pytest.mark.parametrize(("board", "code"), [(HonestBoard, 0), (DIFFERENT["zeros"], 1), (REFUSED["no hash"][0], 2)])
def test_the_exit_codes(
    firmware: Firmware, plug: Plug, tmp_path: Path, board: Callable[[Firmware], HonestBoard], code: int
) -> None:
    plug(board, firmware)
    model = tmp_path / "model.tflite"
    model.write_bytes(to_tflite(firmware.network))
    arguments = ["run", str(firmware.elf), str(model), "--engine", "serial", "--port", "any", "--name", "two by two"]
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code
