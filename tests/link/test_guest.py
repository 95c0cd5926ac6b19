# SPDX-License-Identifier: Apache-2.0
"""The link in firmware on emulated boards."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import numpy as np
import pytest
from covering import EXHAUSTIVE
from gate import every, some_of
from guest import FOLDER as GUESTS
from guest import STARTUP, STARTUP_INCLUDES
from host_link import FOLDER, SOURCES
from needs import require_module
from numpy.testing import assert_array_equal

from ferrule import resources
from ferrule.boards import load_board
from ferrule.emulation import Machine, engine
from ferrule.link import CounterSource, LinkSession

pytestmark = pytest.mark.emu

SIZE_BYTES = 27_648
SMALL_BYTES = 3_000
"""The size on QEMU, which takes about 40 us per byte of a UART; one board has the other size there, too."""
Build = Callable[[str, int], Machine]


@pytest.fixture(scope="session")
def build(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("guest")
    root = resources.root()

    def function(name: str, size_bytes: int) -> Machine:
        board = load_board(name)
        elf = folder / f"{name}-{size_bytes}.elf"
        argv = [
            *(arm_gcc, f"-mcpu={board.cpu.type}", "-mthumb", "-O2", "-std=c11", "-ffreestanding", "-nostdlib"),
            *("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", f"-DUART_BASE={board.link_uart.address:#x}u"),
            f"-DBYTES={size_bytes}u",
            *(f"-I{path}" for path in (root / "include", *STARTUP_INCLUDES)),
            f"-Wl,--defsym=CODE={board.memory(board.placement.code).address:#x}",
            f"-Wl,--defsym=RAM={board.memory(board.placement.data).address:#x}",
            *("-T", GUESTS / "link.ld", "-o", elf, FOLDER / "guest_link.c"),
            *STARTUP,
            *(root / "src_c" / source for source in (*SOURCES, "link/serve.c")),
        ]
        subprocess.run([str(each) for each in argv], check=True, timeout=120)
        return Machine(board=board, elf=elf)

    return function


@pytest.mark.parametrize(
    "board", some_of(["mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505"], ["mps2-an386", "mps2-an505"])
)
@pytest.mark.parametrize("name", every(2, ["qemu", "unicorn"]))
def test_on_a_board(build: Build, name: str, board: str, request: pytest.FixtureRequest) -> None:
    if name == "unicorn":
        require_module("unicorn", "pip install 'ferrule[run]'")
    else:
        request.getfixturevalue("qemu")
    size_bytes = SIZE_BYTES if name == "unicorn" or board == "mps2-an386" or EXHAUSTIVE else SMALL_BYTES
    data = np.random.default_rng(2).integers(0, 256, size_bytes, dtype=np.uint8)
    with engine(name).start(build(board, size_bytes)) as guest, LinkSession(guest.channel(), timeout_s=10.0) as session:
        assert session.model_info().stack_bytes == 0x4000
        profiled = session.run([data], profile=True)
        plain = session.run([data])
    assert_array_equal(profiled.outputs[0], data)
    assert_array_equal(plain.outputs[0], data)
    assert 2048 <= plain.stack.run_bytes <= 2048 + 100
    assert plain.stack.run_bytes < plain.stack.peak_bytes <= 2048 + 500
    if profiled.counter is CounterSource.DWT:
        instructions, slack = 1, 12  # the slack covers the call and the loop around the operators
    else:
        assert name == "qemu"
        instructions, slack = 40 if board != "mps2-an505" else 50, 2  # per tick of a core at 25 or 20 MHz
    spins = [2 * 1_000_000, 2 * 20]
    for counted, known in zip(profiled.counters, spins, strict=False):
        assert -slack <= counted - known / instructions <= slack
    assert profiled.counters[3] < size_bytes / instructions
    assert sum(profiled.counters) <= profiled.total
    assert abs(plain.total - sum(profiled.counters)) <= 60 / instructions + 6
