# SPDX-License-Identifier: Apache-2.0
"""The conformance program of platforms/conformance, built with a real kernel, run on an engine, and read."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from children import ran
from cmsdk_parts import conformance_parts
from guest import in_virtual_time
from needs import require_program, require_variable
from zephyr_tree import zephyr_tree

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.boards import load_board
from ferrule.emulation import Machine, engine
from ferrule.resources import root

TICKS_HZ = (100, 1000, 10000)
FOLDER = root() / "platforms" / "conformance"
CORE = ("-mcpu=cortex-m3", "-mthumb", "-O2", "-g", "-ffunction-sections", "-fdata-sections")
STRICT = ("-std=c11", "-ffreestanding", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wundef", "-Werror")
DEVICE_SOURCES = tuple(root() / "src_c" / "device" / name for name in ("device.c", "command.c", "held.c"))
BUILD_TIMEOUT_S = 600
RUN_TIMEOUT_S = 900
"""A run takes about 20 seconds on an idle machine."""
BOARD = "mps2-an385"
_LINE = re.compile(r"(ok|FAILED) +([^.]+)\.([^:]+): (\S+) \((\S+)\)")
_NOTE = re.compile(r"note +([^.]+)\.([^:]+): (\S+)")
_END = re.compile(r"end of (\d+) checks, (\d+) failed")


@frozen
class Check:
    """A line of the program."""

    group: str
    name: str
    is_right: bool
    found: str
    expected: str

    @override
    def __str__(self) -> str:
        return f"{self.group}.{self.name}: {self.found}, expected {self.expected}"


@frozen
class Report:
    """What the program printed, read."""

    text: str
    checks: tuple[Check, ...]
    notes: Mapping[str, str]
    is_complete: bool
    """Whether the last line is there and counts the checks that were read."""

    @classmethod
    def read(cls, text: str) -> Report:
        """Read a report; a line of unknown form makes it incomplete."""
        checks: list[Check] = []
        notes: dict[str, str] = {}
        counts: tuple[str, ...] | None = None
        known = True
        for line in text.splitlines():
            if found := _LINE.fullmatch(line):
                verdict, group, name, value, expected = found.groups()
                checks.append(Check(group=group, name=name, is_right=verdict == "ok", found=value, expected=expected))
            elif found := _NOTE.fullmatch(line):
                notes[f"{found[1]}.{found[2]}"] = found[3]
            elif found := _END.fullmatch(line):
                counts = found.groups()
            else:
                known &= line.startswith("conformance of ") or not line
        failed = sum(not check.is_right for check in checks)
        complete = known and counts == (str(len(checks)), str(failed))
        return cls(text=text, checks=tuple(checks), notes=notes, is_complete=complete)

    def group(self, name: str) -> tuple[Check, ...]:
        """Return the checks of a group."""
        return tuple(each for each in self.checks if each.group == name)


@frozen
class Sources:
    """What a kernel needs: its own files and headers, and those of the adapter and the port."""

    kernel: Sequence[Path]
    headers: Sequence[Path]
    """Folders of the kernel's headers."""
    own: Sequence[Path]
    """The adapter and the port."""
    includes: Sequence[Path]
    platform: str
    """The adapter's header."""
    defines: Mapping[str, str]
    tick: str
    """The macro of the tick rate."""


def _freertos() -> Sources:
    kernel = require_variable("FREERTOS_KERNEL_PATH")
    port = kernel / "portable" / "GCC" / "ARM_CM3"
    adapter = root() / "platforms" / "freertos"
    return Sources(
        kernel=[*(kernel / name for name in ("tasks.c", "queue.c", "list.c")), port / "port.c"],
        headers=[kernel / "include", port],
        own=[FOLDER / "freertos" / "main.c", adapter / "src" / "freertos.c"],
        includes=[FOLDER / "freertos", adapter / "include", adapter / "src"],
        platform="ferrule/platform/freertos.h",
        defines={
            "CONFORMANCE_SVC_HANDLER": "vPortSVCHandler",
            "CONFORMANCE_PENDSV_HANDLER": "xPortPendSVHandler",
            "CONFORMANCE_SYSTICK_HANDLER": "xPortSysTickHandler",
        },
        tick="configTICK_RATE_HZ",
    )


def _rtx5() -> Sources:
    cmsis = require_variable("CMSIS_PATH") / "CMSIS"
    rtx = require_variable("CMSIS_RTX_PATH")
    adapter = root() / "platforms" / "cmsis"
    return Sources(
        kernel=[
            *sorted((rtx / "Source").glob("*.c")),
            *(rtx / "Source" / "GCC" / "irq_armv7m.S", rtx / "Config" / "RTX_Config.c"),
            cmsis / "RTOS2" / "Source" / "os_systick.c",
        ],
        headers=[
            *(cmsis / part / "Include" for part in ("Core", "Driver", "RTOS2")),
            *(rtx / part for part in ("Include", "Source", "Config")),
        ],
        own=[FOLDER / "rtx5" / "main.c", *sorted((adapter / "src").glob("*.c"))],
        includes=[FOLDER / "rtx5", adapter / "include"],
        platform="ferrule/platform/cmsis.h",
        defines={
            "_RTE_": "",
            "FERRULE_CMSIS_RTOS2": "1",
            "FERRULE_CMSIS_MUTEX_BYTES": "28",
            "FERRULE_CMSIS_EVENT_FLAGS_BYTES": "16",
            "FERRULE_PORT_H": "<ferrule/platform/cmsis_port.h>",
            "CONFORMANCE_SVC_HANDLER": "SVC_Handler",
            "CONFORMANCE_PENDSV_HANDLER": "PendSV_Handler",
            "CONFORMANCE_SYSTICK_HANDLER": "SysTick_Handler",
        },
        tick="OS_TICK_FREQ",
    )


def _threadx() -> Sources:
    kernel = require_variable("THREADX_PATH")
    parts = ("initialize", "mutex", "semaphore", "thread", "time")
    port = kernel / "ports" / "cortex_m3" / "gnu"
    adapter = root() / "platforms" / "threadx"
    return Sources(
        kernel=[
            *(path for part in parts for path in sorted((kernel / "common" / "src").glob(f"tx*_{part}*.c"))),
            *sorted((port / "src").glob("*.S")),
        ],
        headers=[kernel / "common" / "inc", port / "inc"],
        own=[FOLDER / "threadx" / "main.c", *sorted((adapter / "src").glob("*.c"))],
        includes=[adapter / "include"],
        platform="ferrule/platform/threadx.h",
        defines={
            "CONFORMANCE_SVC_HANDLER": "board_no_handler",
            "CONFORMANCE_PENDSV_HANDLER": "PendSV_Handler",
            "CONFORMANCE_SYSTICK_HANDLER": "board_tick_handler",
        },
        tick="TX_TIMER_TICKS_PER_SECOND",
    )


_SOURCES: Mapping[str, Callable[[], Sources]] = {"freertos": _freertos, "rtx5": _rtx5, "threadx": _threadx}
KERNELS = (*_SOURCES, "zephyr")
ENGINES = ("qemu", "unicorn")


def _run(argv: Sequence[object], folder: Path) -> None:
    done = ran(list(map(str, argv)), cwd=folder, timeout=BUILD_TIMEOUT_S)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def build(kernel: str, tick_hz: int, folder: Path, replaced: Mapping[Path, Path] | None = None) -> Path:
    """Build the program with a kernel, and return the ELF's path; skip the test where its tree is missing.

    `replaced` maps Ferrule's own sources to mutants of them.
    """
    if kernel == "zephyr":
        assert not replaced
        tree = zephyr_tree()
        options = (f"-DCONFIG_SYS_CLOCK_TICKS_PER_SEC={tick_hz}",)
        return tree.build(FOLDER / "zephyr", folder / "build", tree.spelt(BOARD), *options)
    compiler = require_program("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi")
    sources = _SOURCES[kernel]()
    defines = [
        *(f"-D{name}={value}" if value else f"-D{name}" for name, value in sources.defines.items()),
        f'-DFERRULE_CONFORMANCE_PLATFORM_H="{sources.platform}"',
        f"-D{sources.tick}={tick_hz}",
    ]
    board = FOLDER / "mps2_an385"
    includes = [*sources.includes, FOLDER / "include", board, root() / "include"]
    paths = [*(f"-I{path}" for path in includes), *(f"-isystem{path}" for path in sources.headers)]
    own = [*DEVICE_SOURCES, *sources.own, *sorted((FOLDER / "src").glob("*.c")), *sorted(board.glob("*.c"))]
    own = [(replaced or {}).get(path, path) for path in own]
    for name, files, flags in (
        ("kernel", sources.kernel, ("-std=gnu11", "-ffreestanding", "-w")),
        ("own", own, STRICT),
    ):
        (folder / name).mkdir(parents=True)
        _run([compiler, *CORE, *flags, *defines, *paths, "-c", *files], folder / name)
    elf = folder / "conformance.elf"
    objects = [*sorted((folder / "own").glob("*.o")), *sorted((folder / "kernel").glob("*.o"))]
    link = ("-nostartfiles", "-Wl,--gc-sections", "--specs=nosys.specs", "-T", board / "mps2_an385.ld")
    _run([compiler, *CORE, *link, *objects, "-o", elf], folder)
    return elf


def _on_unicorn(elf: Path) -> Report:
    text = b""
    end = time.monotonic() + RUN_TIMEOUT_S
    with engine("unicorn").start(Machine(board=load_board(BOARD), elf=elf, devices=conformance_parts())) as session:
        channel = session.channel("uart0")
        while re.search(rb"^(end of|fault).*\n", text, re.MULTILINE) is None and time.monotonic() < end:
            text += channel.read(1024, 1.0)
    return Report.read(text.decode("ascii", "replace"))


def run(elf: Path, engine_name: str = "qemu") -> Report:
    """Run the program on an engine, whose time passes with the instructions, and return its report."""
    if engine_name == "unicorn":
        return _on_unicorn(elf)
    lines: list[str] = []
    with in_virtual_time(BOARD, elf, shift=3) as output:
        for line in output:
            lines.append(line.decode("ascii", "replace"))
            if lines[-1].startswith(("end of ", "fault")):
                break
    return Report.read("".join(lines))
