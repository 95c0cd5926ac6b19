# SPDX-License-Identifier: Apache-2.0
"""`ferrule run firmware.elf` and `ferrule serve-board`: a user's own firmware, its ends and its exit codes."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from board_programs import talker
from needs import require_module

from ferrule.cli.run_elf import _note
from ferrule.emulation.serving import bridge
from ferrule.firmware import read_image
from ferrule.link.pty import PtyChannel
from ferrule.testing import build_program, start

pytestmark = [pytest.mark.cc, pytest.mark.emu]
Ferrule = Callable[..., Any]


@pytest.fixture
def elf() -> Path:
    """A small firmware for mps2-an386."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    return talker()


def test_until_a_text(ferrule: Ferrule, elf: Path) -> None:
    done = ferrule("run", elf, "--until", "^ready")
    assert (done.code, done.out) == (0, "ready\r\n")
    assert "has printed 'ready'" in done.err


def test_a_text_that_does_not_come(ferrule: Ferrule, elf: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    done = ferrule("run", elf, "--until", "never", "--timeout", "0.01", "--json", path)
    assert done.code == 1
    document = json.loads(path.read_text())
    assert document["kind"] == "console"
    assert (document["end"], document["console"], document["crash"]) == ("stopped", "ready\r\n", None)
    assert document["instructions"] >= 250_000
    assert "/never/ did not come: 0.01 s of the board" in document["why"]


def test_without_a_text_the_time_ends_it(ferrule: Ferrule, elf: Path) -> None:
    assert ferrule("run", elf, "--timeout", "0.01", "-q").code == 0
    assert _note(read_image(elf), "") == "", "a note on Ferrule's firmware is not for others"


def test_a_crash(ferrule: Ferrule, tmp_path: Path) -> None:
    (tmp_path / "crash.c").write_text("int main(void)\n{\n    return *(volatile int *)0xDEAD0000u;\n}\n")
    done = ferrule("run", build_program([tmp_path / "crash.c"], tmp_path / "build"), "--json", "-")
    document = json.loads(done.out)
    assert (done.code, document["end"]) == (2, "crashed")
    assert document["crash"]["registers"]


def test_json_on_stdout_is_all_of_it(ferrule: Ferrule, elf: Path) -> None:
    done = ferrule("run", elf, "--until", "ready", "--json", "-")
    assert json.loads(done.out)["end"] == "matched"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--until", "("], "is not a regular expression"),
        (["--input", "x.npy"], "--input is for a model, and is not valid with an ELF alone"),
        (["--html", "x.html"], "--html is for a model"),
        (["--board", "nrf52840dk", "--timeout", "1"], "where nrf52840dk has nothing"),
        (["--device", "npu=CpuAcc"], "CpuAcc has no devices"),
        (["--fault", "npu:never-done"], "there is no device 'npu' on the bus"),
        (["--engine", "serial"], "needs the board's port"),
        (["--engine", "renode", "--gdb", "3333"], "gdb cannot attach to engine renode"),
    ],
)
def test_bad_arguments(ferrule: Ferrule, elf: Path, arguments: list[str], message: str) -> None:
    done = ferrule("run", elf, *arguments)
    assert done.code == 2
    assert message in done.err


def test_devices_of_the_configuration(ferrule: Ferrule, elf: Path, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[devices.npu0]\nbackend = "Woofles"\nbinding = { base = 0xA0010000 }\n')
    done = ferrule("run", elf, "--config", tmp_path / "own.toml", "--fault", "npu0:never-done", "--until", "ready")
    assert done.code == 0


def test_what_is_not_one_firmware(ferrule: Ferrule, elf: Path, dense: Path, tmp_path: Path) -> None:
    (tmp_path / "other.elf").write_bytes(b"\x7fELF and no more")
    for arguments, message in (
        ([dense, elf], "one ELF and its model"),
        ([elf, dense, dense], "one ELF and its model"),
        ([elf, dense], "is not the firmware of model"),
        ([tmp_path / "other.elf"], "is not a valid ELF file"),
        ([dense, "--until", "x"], "--until is for your own firmware"),
    ):
        done = ferrule("run", *arguments)
        assert (done.code, message in done.err) == (2, True), done.err


def test_a_models_firmware_that_is_built_already(ferrule: Ferrule, dense: Path, tmp_path: Path, arm_gcc: str) -> None:
    options = ("--toolchain", "arm-none-eabi-gcc")
    assert ferrule("run", dense, "--keep", tmp_path / "project", *options).code == 0
    elf = tmp_path / "project" / "build" / "firmware.elf"
    done = ferrule("run", elf, dense, *options)
    assert done.code == 0
    assert "verdict: exact" in done.out
    alone = ferrule("run", elf, "--timeout", "0.01")
    assert "note: a firmware that Ferrule has generated waits for its inputs" in alone.err
    other = ferrule("run", elf, dense, "--goal", "size", "--no-fallback", "--backends", "CpuRef")
    assert other.code == 2


def test_a_uart_at_a_pseudo_terminal(elf: Path) -> None:
    port, said = PtyChannel(), b""
    other = os.open(port.path, os.O_RDWR | os.O_NOCTTY)
    try:

        def answered() -> bool:
            nonlocal said
            if select.select([other], [], [], 0)[0]:
                said += os.read(other, 4096)
            if said.endswith(b"ready\r\n"):
                os.write(other, b"h\x00\xff\r\n")  # raw: nothing is echoed or translated
            return b"hello, two\r\n" in said

        with start(elf) as board:
            bridge(board.channel(), port, until=answered)
    finally:
        os.close(other)
        port.close()
    assert said.startswith(b"ready\r\nhello, one\r\nhello, two\r\n")


@pytest.mark.nightly
def test_serve_board(elf: Path) -> None:
    argv = [sys.executable, "-m", "ferrule", "serve-board", str(elf)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        place = process.stderr.readline().split(" at ")[1].partition(",")[0]
        other = os.open(place, os.O_RDWR | os.O_NOCTTY)
        said = b""
        while b"ready" not in said and select.select([other], [], [], 60)[0]:
            said += os.read(other, 4096)
        os.close(other)
        process.terminate()
        assert process.wait(60) == 0
    assert b"ready" in said
