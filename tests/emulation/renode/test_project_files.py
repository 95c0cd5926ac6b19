# SPDX-License-Identifier: Apache-2.0
"""The files of `--emit-renode`: their parts, and the generated test's bytes on the engine unicorn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_networks import dense, float_dense

import ferrule
from ferrule.boards import load_board, read_platform
from ferrule.emulation import Machine, engine
from ferrule.errors import FerruleError
from ferrule.firmware import build_project
from ferrule.firmware.project import Project


def steps(text: str, test: str) -> list[tuple[str, bytes]]:
    """Return the bytes that a test case sends and awaits, in order."""
    body = text.partition(f"\n{test}\n")[2].partition("\n\n")[0]
    found: list[tuple[str, bytes]] = []
    for line in body.splitlines():
        keyword, *cells = re.split(r" {2,}", line.strip())
        if keyword in {"Send", "..."}:
            data = bytes.fromhex("".join(cells))
            if keyword == "...":
                data = found.pop()[1] + data
            found.append(("send", data))
        elif keyword == "Wait For Bytes On Uart":
            assert cells[1].startswith("timeout=")
            found.append(("await", bytes.fromhex(cells[0])))
        else:
            assert keyword == "Boot"
    return found


@pytest.fixture
def generated(tmp_path: Path) -> Project:
    """A small network's project, with Renode's files beside it."""
    return ferrule.generate(
        dense(), out=tmp_path / "project", toolchain="arm-none-eabi-gcc", renode=tmp_path / "files" / "renode"
    )


def test_the_files(generated: Project, tmp_path: Path) -> None:
    folder = tmp_path / "files" / "renode"
    written = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    assert written == ["ferrule.resc", "ferrule.robot", "mps2-an386.repl", "mps2/mps2.repl"]
    board = load_board("mps2-an386")
    assert read_platform(folder / "mps2-an386.repl").entries.keys() == read_platform(board.platform).entries.keys()
    lines = (folder / "ferrule.resc").read_text().splitlines()
    searched, loaded = "path add $ORIGIN", "machine LoadPlatformDescription $ORIGIN/mps2-an386.repl"
    assert lines.index(searched) < lines.index(loaded)  # the description includes another file
    assert "sysbus LoadELF $ORIGIN/../../project/build/firmware.elf" in lines
    assert "sysbus.cpu PerformanceInMips 25" in lines
    assert lines.index('mach create "ferrule"') < lines.index("sysbus.cpu VectorTableOffset 0x0")


@pytest.mark.parametrize("test", ["The Firmware Has The Model", "One Inference Is Bit-Exact"])
def test_the_test_passes_on_unicorn(arm_gcc: str, generated: Project, tmp_path: Path, test: str) -> None:
    text = (tmp_path / "files" / "renode" / "ferrule.robot").read_text()
    elf = build_project(generated).path
    assert elf == (generated.folder / "build" / "firmware.elf")
    with engine("unicorn").start(Machine(board=load_board("mps2-an386"), elf=elf)) as session:
        channel, heard = session.channel(), b""
        found = steps(text, test)
        assert len(found) == (4 if test.startswith("The") else 4 + 2 + 2 + 2)
        for kind, data in found:
            if kind == "send":
                channel.write(data)
                continue
            while data not in heard:
                heard += channel.read(4096, 1)
            heard = heard.partition(data)[2]


def test_floats_are_not_compared(tmp_path: Path) -> None:
    ferrule.generate(float_dense(), out=tmp_path / "project", renode=tmp_path / "renode")
    text = (tmp_path / "renode" / "ferrule.robot").read_text()
    assert "The Firmware Has The Model" in text
    assert "Bit-Exact" not in text


def test_models_in_python_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=r"the models of devices \(woofles\) are in Python") as caught:
        ferrule.generate(dense(), out=tmp_path / "project", backends=("Woofles",), renode=tmp_path / "renode")
    assert 'engine="renode"' in str(caught.value.hint)
    assert not (tmp_path / "project").exists()


def test_other_platforms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="made for the platform bare-metal, not for zephyr"):
        ferrule.generate(dense(), out=tmp_path / "project", platform="zephyr", renode=tmp_path / "renode")


def test_the_files_are_written_anew(generated: Project, tmp_path: Path) -> None:
    file = tmp_path / "files" / "renode" / "ferrule.robot"
    before = file.read_text()
    file.write_text("changed")
    ferrule.generate(dense(), out=generated.folder, toolchain="arm-none-eabi-gcc", renode=file.parent)
    assert file.read_text() == before
