# SPDX-License-Identifier: Apache-2.0
"""The adapter with the real FreeRTOS kernel, on an emulated board.

The tests run where FREERTOS_KERNEL_PATH names a checkout of FreeRTOS/FreeRTOS-Kernel, version 11 or later.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest
from children import ran
from guest import build_guest
from needs import require_module, require_variable

from ferrule import resources
from ferrule.boards import load_board
from ferrule.emulation import engine
from ferrule.link.protocol import Status

pytestmark = [pytest.mark.cc, pytest.mark.emu]
FOLDER = Path(__file__).parent
ADAPTER = resources.root() / "platforms" / "freertos"
BOARD = "mps2-an385"
WORDS = (
    *("init", "bind", "errors", "overlaps", "interrupt", "activate", "open", "lent priority"),
    *("foreign open", "foreign close", "close", "own priority", "deactivate", "destroy"),
)


def run(folder: Path, adapter: Path, arm_gcc: str, name: str = "unicorn") -> dict[str, int]:
    """Build the program with the kernel, run it, and return the values that it sends."""
    sources, root = require_variable("FREERTOS_KERNEL_PATH"), resources.root()
    port = sources / "portable" / "GCC" / "ARM_CM3"
    flags = [
        *(f"-I{path}" for path in (FOLDER, ADAPTER / "include", ADAPTER / "src", sources / "include", port)),
        *("-DFERRULE_FREERTOS_OPEN_TIMEOUT_MS=200", "-Wno-error"),
        *(str(sources / name) for name in ("tasks.c", "queue.c", "list.c")),
        *(str(port / "port.c"), str(root / "src_c" / "device" / "device.c"), str(adapter), "-lgcc"),
    ]
    machine = build_guest(arm_gcc, "contention", load_board(BOARD), folder / "contention.elf", FOLDER, flags)
    data, expected = b"", 4 * len(WORDS)
    with engine(name).start(machine) as session:
        channel = session.channel()
        while len(data) < expected:
            data += channel.read(expected - len(data), 1.0)
    return dict(zip(WORDS, struct.unpack(f"<{len(WORDS)}i", data), strict=True))


@pytest.mark.parametrize("name", ["unicorn", "qemu"])
def test_two_tasks_take_turns(arm_gcc: str, qemu: str, tmp_path: Path, name: str) -> None:
    found = run(tmp_path, ADAPTER / "src" / "freertos.c", arm_gcc, name)
    assert found.pop("interrupt") == Status.INTERRUPT
    assert found.pop("foreign open") == Status.TIMEOUT
    assert found.pop("foreign close") == Status.OWNER
    assert (found.pop("lent priority"), found.pop("own priority")) == (3, 1)
    assert {name for name, value in found.items() if value != 0} == set()


def test_without_the_mutex_both_are_in(arm_gcc: str, tmp_path: Path) -> None:
    text = (ADAPTER / "src" / "freertos.c").read_text(encoding="utf-8")
    take = "xSemaphoreTake(dev->lock, ticks) == pdTRUE"
    assert text.count(take) == 1
    mutant = tmp_path / "mutant.c"
    mutant.write_text(text.replace(take, "dev->lock != NULL || ticks == 0u"), encoding="utf-8")
    assert run(tmp_path, mutant, arm_gcc)["overlaps"] > 0


def test_the_adapter_compiles_for_a_port_without_an_interrupt_query(tmp_path: Path) -> None:
    """RISC-V's, with a function of the program's."""
    sources, includes = require_variable("FREERTOS_KERNEL_PATH"), resources.root() / "include"
    require_module("ziglang", "pip install 'ferrule[run]'")
    port = sources / "portable" / "GCC" / "RISC-V"
    extensions = port / "chip_specific_extensions" / "RISCV_MTIME_CLINT_no_extensions"
    argv = [
        *(sys.executable, "-m", "ziglang", "cc", "-target", "riscv32-freestanding", "-std=c11", "-ffreestanding"),
        *("-Wall", "-Wextra", "-Werror", "-DconfigMTIME_BASE_ADDRESS=0", "-DconfigMTIMECMP_BASE_ADDRESS=0"),
        *(f"-I{path}" for path in (includes, ADAPTER / "include", ADAPTER / "src", FOLDER)),
        *(f"-isystem{path}" for path in (sources / "include", port, extensions)),
        *("-c", str(ADAPTER / "src" / "freertos.c"), "-o", str(tmp_path / "freertos.o")),
    ]
    done = ran(argv, timeout=300)
    assert "-DFERRULE_FREERTOS_IN_INTERRUPT=my_in_interrupt" in done.stderr
    argv.append("-DFERRULE_FREERTOS_IN_INTERRUPT=my_in_interrupt")
    done = ran(argv, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "freertos.o").is_file()
