# SPDX-License-Identifier: Apache-2.0
"""Boards behind a serial port: the port is real to the software under test, and the board is emulated."""

from __future__ import annotations

import os
import pty
from functools import partial
from pathlib import Path

import pytest
import small_networks
from board_port import board_at_socket, board_at_terminal
from needs import require_program

import ferrule
from ferrule.emulation import EngineError, EngineOptions, engine
from ferrule.errors import FerruleError
from ferrule.firmware.identification import read_identities
from ferrule.link import LinkError, LinkSession
from ferrule.running import session

pytestmark = pytest.mark.emu


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> ferrule.Firmware:
    from needs import require_module

    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    folder = tmp_path_factory.mktemp("serial") / "project"
    return ferrule.compile(small_networks.two_by_two(), out=folder, optimization="Os")


def test_a_board_at_a_terminal_gives_the_same_report(firmware: ferrule.Firmware) -> None:
    expected = firmware.run()
    with board_at_terminal(firmware.board, firmware.elf) as port:
        report = firmware.run(engine="serial", options=EngineOptions(port=port))
    assert report.verdict is ferrule.Verdict.EXACT
    assert report.document.engine == "serial"
    assert report.document.count.unit == "cycles"
    assert (expected.document.count.exact, report.document.count.exact) == (True, False)
    assert report.document.build == expected.document.build
    assert report.memory == expected.memory
    assert report.count.per_inference == expected.count.per_inference
    assert [layer.count for layer in report.document.layers] == [layer.count for layer in expected.document.layers]
    for ours, theirs in zip(report.outputs, expected.outputs, strict=True):
        assert ours.tolist() == theirs.tolist()


def test_the_report_is_of_the_image_on_the_board(firmware: ferrule.Firmware, tmp_path: Path) -> None:
    require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    job = ferrule.Job(toolchain="arm-none-eabi-gcc", optimization="O2", out=tmp_path / "other")
    other = ferrule.compile(small_networks.two_by_two(), job)
    with board_at_terminal(firmware.board, firmware.elf) as port:
        document = other.run(engine="serial", options=EngineOptions(port=port)).document
    build, flash, ram = document.build, document.memory.flash, document.memory.ram
    assert (build.toolchain, build.optimization, build.platform, build.build_s) == ("", "Os", "bare-metal", None)
    assert build.toolchain_version.startswith("Clang ")
    assert build.flags.startswith("-target thumb-freestanding-eabihf -mcpu=cortex_m4")
    assert build.sources == read_identities(firmware.image)[0].sources
    assert flash is not None
    assert flash.total == firmware.image.flash_bytes != other.image.flash_bytes
    assert ram.total == firmware.image.ram_bytes
    assert ram.other is not None
    assert ram.total == ram.workspace + ram.stack_reserved + ram.other
    assert not document.count.exact


def test_a_board_at_a_socket(firmware: ferrule.Firmware) -> None:
    with board_at_socket(firmware.board, firmware.elf) as url:
        assert firmware.run(engine="serial", options=EngineOptions(port=url)).verdict is ferrule.Verdict.EXACT


def test_another_models_firmware_is_noticed(firmware: ferrule.Firmware, tmp_path: Path) -> None:
    other = ferrule.compile(small_networks.dense(), out=tmp_path / "other", optimization="Os")
    with (
        board_at_terminal(firmware.board, firmware.elf) as port,
        pytest.raises(FerruleError, match="was generated from another model"),
    ):
        other.run(engine="serial", options=EngineOptions(port=port))


def test_a_board_that_says_nothing(firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LinkSession", partial(LinkSession, timeout_s=0.1))
    master, slave = pty.openpty()
    try:
        with pytest.raises(EngineError, match=r"did not answer HELLO: 6 attempts of 0\.1 s each") as caught:
            firmware.run(engine="serial", options=EngineOptions(port=os.ttyname(slave)), timeout_s=0.1)
    finally:
        os.close(master)
        os.close(slave)
    assert caught.value.report is None
    assert "first run over" in (caught.value.hint or "")


def test_ports_that_are_none(firmware: ferrule.Firmware, tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="needs the board's port") as missing:
        firmware.run(engine="serial")
    assert "port=" in (missing.value.hint or "")
    with pytest.raises(LinkError, match="cannot be opened"):
        firmware.run(engine="serial", options=EngineOptions(port=str(tmp_path / "ttyNONE")))
    with pytest.raises(LinkError, match="cannot be opened"):
        firmware.run(engine="serial", options=EngineOptions(port="nothing://x"))


def test_device_models_are_refused(firmware: ferrule.Firmware) -> None:
    reason = engine("serial").refuses(firmware.board, ["npu0"])
    assert reason == "device models (npu0) can't be put into a real board; the engines unicorn and renode have them"
    assert engine("serial").refuses(firmware.board) is None
    assert engine("serial").missing() is None


def test_only_the_port_can_be_had(firmware: ferrule.Firmware) -> None:
    from ferrule.emulation import Machine

    with board_at_terminal(firmware.board, firmware.elf) as port:
        machine = Machine(board=firmware.board, elf=firmware.elf, options=EngineOptions(port=port))
        with engine("serial").start(machine) as session:
            with pytest.raises(FerruleError, match="no UART 'uart1' that is connected on a real board"):
                session.channel("uart1")
            assert session.channel("console") is session.channel()
            assert session.counters().instructions is None
