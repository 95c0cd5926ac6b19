# SPDX-License-Identifier: Apache-2.0
"""The bare-metal adapter on emulated cores: detection of interrupts, and when interrupts are masked."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from guest import build_guest
from needs import require_module

from ferrule import resources
from ferrule.boards import load_board
from ferrule.emulation import engine
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
    data = b""
    with engine(name).start(machine) as session:
        channel = session.channel()
        while len(data) < 4 * len(EXPECTED):
            data += channel.read(4 * len(EXPECTED) - len(data), 1.0)
    assert list(struct.unpack(f"<{len(data) // 4}i", data)) == EXPECTED
