# SPDX-License-Identifier: Apache-2.0
"""The bare-metal adapter on emulated cores: interrupts and their masking, and waits that fail and stop their device."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from guest import build_guest, in_virtual_time
from needs import require_module

from ferrule import resources
from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.emulation import Machine, engine
from ferrule.link.protocol import Status

FOLDER = Path(__file__).parent / "firmware"
EXPECTED = [
    *(Status.OK, Status.OK, Status.OK),  # init, bind, activate
    *(1, 0),  # the exception was taken while the driver ran; nothing is masked afterwards
    Status.OK,  # open
    *(Status.INTERRUPT, Status.INTERRUPT, Status.INTERRUPT),  # open, close and destroy within the exception
    *(Status.OK, Status.OK),  # close, deactivate
    *(Status.OK, 1, 1),  # activate with interrupts masked: the exception was not taken, and they are still masked
    2,  # taken as soon as interrupts were unmasked
    *(Status.OK, Status.OK),  # deactivate, destroy
]


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an505"])
@pytest.mark.parametrize("name", ["unicorn", "qemu"])
def test_exceptions(name: str, board: str, arm_gcc: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if name == "unicorn":
        require_module("unicorn", "pip install 'ferrule[run]'")
    else:
        request.getfixturevalue("qemu")
    root = resources.root()
    adapter = root / "platforms" / "bare_metal"
    sources = (root / "src_c" / "device" / "device.c", adapter / "src" / "bare_metal.c")
    flags = [f"-I{adapter / 'include'}", *map(str, sources)]
    machine = build_guest(arm_gcc, "devices", load_board(board), tmp_path / "devices.elf", FOLDER, flags)
    assert words(machine, name, len(EXPECTED)) == EXPECTED


def words(machine: Machine, name: str, count: int) -> list[int]:
    """Return the first words that a firmware sends."""
    data = b""
    with engine(name).start(machine) as session:
        channel = session.channel()
        while len(data) < 4 * count:
            data += channel.read(4 * count - len(data), 1.0)
    return unpacked(data)


def unpacked(data: bytes) -> list[int]:
    """Return the words of a firmware's bytes."""
    return [word for (word,) in struct.iter_unpack("<i", data)]


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("board", ["mps2-an385", "mps2-an500"])
def test_waits_that_fail(board: str, arm_gcc: str, tmp_path: Path, qemu: str) -> None:
    """A timer plays the device. In the firmware's order: how it fails, in flight or not, polled or not, deaf or not."""
    assert qemu
    root = resources.root()
    adapter = root / "platforms" / "bare_metal"
    sources = [
        *(root / "src_c" / "device" / each for each in ("device.c", "command.c")),
        adapter / "src" / "bare_metal.c",
        *CORTEX_M.bare_metal.part("timer").source_paths,
    ]
    flags = [
        f"-I{adapter / 'include'}",
        "-DFERRULE_CLOCK_HZ=25000000u",
        "-DFERRULE_DEVICE_STOP_US=200u",
        *map(str, sources),
    ]
    machine = build_guest(arm_gcc, "stop", load_board(board), tmp_path / "stop.elf", FOLDER, flags)
    expected = []
    for status in (Status.TIMEOUT, Status.TIMEOUT, Status.CANCELLED):
        for deaf in (False, True) * 4:
            failed = Status.DEVICE if deaf else Status.OK
            used = [Status.OK, Status.OK, Status.OK, Status.DEVICE if deaf else status, Status.OK, failed, failed]
            expected += [*used, int(deaf), int(deaf), Status.OK, 0, Status.OK]
    with in_virtual_time(board, machine.elf, shift=3) as output:
        assert unpacked(output.read(4 * len(expected))) == expected
