# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from children import ran
from gate import some_of
from needs import require_module, require_sanitizers

from ferrule.architectures import CORTEX_M
from ferrule.boards import Board, board_names, load_board
from ferrule.emulation import EngineError, Machine, engine
from ferrule.firmware import SourceSet, Toolchain, execute, plan_build, read_image, toolchain
from ferrule.firmware.linker import StackGuard, stack_guard
from ferrule.firmware.uart import uart_driver

ON_QEMU = [name for name in board_names() if load_board(name).qemu is not None]


def rarely_repeated(names: list[str]) -> list[object]:
    """Return boards as parameters; only `make nightly` takes those with the memory map of another."""
    repeated = ("mps2-an385", "mps2-an500")
    return some_of(names, [name for name in names if name not in repeated])


RECORD_WORDS = 17
FAULT_MAGIC = 0x544C4146


def build(source: Path, board: Board, toolchain: Toolchain, folder: Path, **defines: str) -> Path:
    return execute(plan_build(SourceSet(sources=[source], defines=defines), board, toolchain, folder / "build"))


@pytest.mark.cc
@pytest.mark.parametrize("sanitize", [False, True])
def test_memory_functions_are_right_for_all_alignments(
    sanitize: bool, host_cc: tuple[str, ...], programs: Path, tmp_path: Path
) -> None:
    if sanitize:
        require_sanitizers("address")
    names = ("memcpy", "memmove", "memset", "memcmp")
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if sanitize else []
    flags = ["-std=c11", "-O2", "-fno-builtin", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", *sanitizers]
    renamed, program = tmp_path / "memory.o", tmp_path / "test"
    source = CORTEX_M.startup.folder / "memory.c"
    defines = [f"-D{name}=test_{name}" for name in names]
    subprocess.run([*host_cc, *flags, *defines, "-c", str(source), "-o", str(renamed)], check=True)
    subprocess.run([*host_cc, *flags, str(programs / "memory.c"), str(renamed), "-o", str(program)], check=True)
    done = ran([str(program)])
    assert done.stdout.splitlines()[-1:] == ["0 failures"], done.stdout + done.stderr


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("name", some_of(ON_QEMU, ("mps2-an386", "mps2-an505", "microbit")))
def test_main_finds_everything_prepared(
    name: str, any_toolchain: Toolchain, qemu: str, programs: Path, tmp_path: Path
) -> None:
    board = load_board(name)
    assert board.qemu is not None
    driver, uart = uart_driver(board), f"{board.link_uart.address:#x}u"
    defines = {"TEST_UART": uart, "TEST_HEADER": f'"{driver.header}"', "TEST_DRIVER": driver.prefix}
    if driver.clocked:
        defines["TEST_CLOCK_HZ"] = "16000000u"
    sources = [programs / "arithmetic.c", *driver.contribution.source_paths]
    elf = execute(plan_build(SourceSet(sources=sources, defines=defines), board, any_toolchain, tmp_path / "build"))
    others = [argument for _ in range(board.qemu.serial[board.link_uart.name]) for argument in ("-serial", "null")]
    argv = [
        qemu,
        "-M",
        board.qemu.name,
        "-display",
        "none",
        "-monitor",
        "none",
        *others,
        "-serial",
        "stdio",
        "-kernel",
        str(elf),
    ]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        output = b""
        while not output.endswith(b".") and (piece := process.stdout.read(1)):
            output += piece
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert output.decode().split() == [
        "1234abcd",
        "0000001d",
        "00000000",
        "00000177",
        f"{99_000_000_693 // 7 & 0xFFFFFFFF:08x}",
        f"{100_000_000:08x}",
        "fffffffd",
        "00000000",
        "00000000",
        ".",
    ]


MOST_LOOKS = 20_000


def fault_of(qemu: str, board: Board, elf: Path) -> list[int]:
    """Run a firmware until it records a fault; return the record's words and the core's pc."""
    assert board.qemu is not None
    address = read_image(elf).address_of("ferrule_fault_record")
    argv = [
        qemu,
        "-M",
        board.qemu.name,
        "-display",
        "none",
        "-monitor",
        "stdio",
        "-serial",
        "null",
        "-kernel",
        str(elf),
    ]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for _ in range(MOST_LOOKS):
                process.stdin.write(f"x /{RECORD_WORDS}wx {address:#x}\ninfo registers\n")
                process.stdin.flush()
                words: list[int] = []
                for line in process.stdout:
                    if match := re.match(r"[0-9a-f]+: ((?:0x[0-9a-f]+ ?)+)$", line):
                        words.extend(int(word, 16) for word in match[1].split())
                    if match := re.search(r"R15=([0-9a-f]+)", line):
                        words.append(int(match[1], 16))
                        break
                if words[0] == FAULT_MAGIC:
                    return words
            raise AssertionError(f"no fault is recorded after {MOST_LOOKS} looks")
        finally:
            process.kill()


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    ("kind", "cfsr_bit", "hfsr"),
    [(1, 1 << 9, 1 << 30), (2, 1 << 16, 1 << 30)],  # bus error; undefined instruction; both escalated to HardFault
    ids=["unmapped", "undefined"],
)
@pytest.mark.parametrize("name", some_of(ON_QEMU, ("mps2-an386", "microbit")))
def test_a_fault_is_recorded(
    name: str, kind: int, cfsr_bit: int, hfsr: int, any_toolchain: Toolchain, qemu: str, programs: Path, tmp_path: Path
) -> None:
    board = load_board(name)
    nowhere = 0xD000_0000 if name == "microbit" else 0xF000_0000  # QEMU's nRF51 has something at the latter
    elf = build(
        programs / "fault.c", board, any_toolchain, tmp_path, TEST_FAULT=str(kind), TEST_ADDRESS=f"{nowhere:#x}u"
    )
    image = read_image(elf)
    _, exception, *_, r12, lr, pc, psr, sp, exc_return, cfsr, hfsr_found, _, bfar, valid, halted = fault_of(
        qemu, board, elf
    )
    assert exception == 3
    assert image.describe(pc).startswith("main")
    assert image.describe(lr).startswith(("start", "ferrule_reset"))
    assert (psr >> 24 & 1, valid) == (1, 1)
    assert r12 == 0 or board.cpu.mve  # compilers use it there
    assert sp in board.memory(board.placement.stack)
    assert exc_return >> 8 == 0xFFFFFF
    if board.cpu.features.baseline:
        assert (cfsr, hfsr_found, bfar) == (0, 0, 0)
    else:
        assert cfsr & cfsr_bit
        assert hfsr_found & hfsr
        assert kind != 1 or bfar == nowhere
    assert image.describe(halted).startswith("ferrule_fault_halt")


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(("kind", "valid"), [(4, 1), (5, 0)], ids=["at the top", "above the top"])
def test_a_frame_is_read_if_all_of_it_lies_in_the_stack(
    kind: int, valid: int, any_toolchain: Toolchain, qemu: str, programs: Path, tmp_path: Path
) -> None:
    board = load_board("mps2-an385")
    elf = build(programs / "fault.c", board, any_toolchain, tmp_path, TEST_FAULT=str(kind))
    image = read_image(elf)
    record = fault_of(qemu, board, elf)
    pc, psr, sp, found = record[8], record[9], record[10], record[16]
    assert (found, sp) == (valid, image.address_of("ferrule_stack_top") + (kind - 4) * 8 - 32)
    assert image.describe(pc).startswith("main") if valid else (pc, psr) == (0, 0)


MEMORY_FAULTS = 1 << 1 | 1 << 4  # CFSR.DACCVIOL, MSTKERR: the MPU's guard
STACK_OVERFLOW = 1 << 20  # CFSR.STKOF: MSPLIM
DEEPEST_BYTES = 2048  # more than a frame of the program that overflows the stack


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("name", rarely_repeated(ON_QEMU))
def test_a_stack_overflow_is_recorded_at_once(
    name: str, arm_gcc: str, qemu: str, programs: Path, tmp_path: Path
) -> None:
    board = load_board(name)
    elf = build(programs / "fault.c", board, toolchain("arm-none-eabi-gcc"), tmp_path, TEST_FAULT="3")
    record = fault_of(qemu, board, elf)
    limit = read_image(elf).address_of("ferrule_stack_limit")
    checked = stack_guard(board) is None
    if board.cpu.features.baseline:
        assert record[1] == 3  # HardFault, whose cause Armv6-M does not record
    else:
        assert record[12] & (STACK_OVERFLOW if checked else MEMORY_FAULTS)
    assert limit - (0 if checked else DEEPEST_BYTES) <= record[10] < limit + DEEPEST_BYTES


@pytest.mark.cc
@pytest.mark.emu
def test_a_guard_within_a_memory_protects_what_is_below(
    any_toolchain: Toolchain, qemu: str, programs: Path, tmp_path: Path
) -> None:
    board = load_board("mps2-an386")
    board = replace(board, placement=replace(board.placement, weights=board.placement.stack))
    assert stack_guard(board) == StackGuard(log2=8, reserved=True)
    elf = build(programs / "fault.c", board, any_toolchain, tmp_path, TEST_FAULT="3")
    record = fault_of(qemu, board, elf)
    image = read_image(elf)
    assert record[12] & MEMORY_FAULTS
    assert image.address_of("ferrule_stack_guard") == image.address_of("ferrule_stack_limit") - 256
    assert image.address_of("ferrule_stack_guard") >= board.memory(board.placement.stack).address


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(
    "name", rarely_repeated([name for name in board_names() if engine("unicorn").refuses(load_board(name)) is None])
)
def test_a_stack_overflow_ends_the_run_on_unicorn(name: str, arm_gcc: str, programs: Path, tmp_path: Path) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    board = load_board(name)
    elf = build(programs / "fault.c", board, toolchain("arm-none-eabi-gcc"), tmp_path, TEST_FAULT="3")
    causes = "stack limit violation|bus error on a data access|bus error while entering an exception"
    if board.cpu.features.baseline:
        causes = "HardFault|lockup"
    with (
        engine("unicorn").start(Machine(board=board, elf=elf)) as session,
        pytest.raises(EngineError, match=causes) as caught,
    ):
        session.channel().read(1, 10)
    assert caught.value.report is not None
    limit = read_image(elf).address_of("ferrule_stack_limit")
    assert limit - DEEPEST_BYTES <= caught.value.report.registers["sp"] < limit + DEEPEST_BYTES


DATA_CACHE_ON = 1 << 16  # CCR.DC


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize(("name", "line_bytes"), [("mps2-an500", 32), ("mps2-an386", 0)])
def test_the_data_cache_is_on_where_the_core_has_one(
    name: str, line_bytes: int, arm_gcc: str, programs: Path, tmp_path: Path
) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    board = load_board(name)
    assert board.cache_line_bytes == line_bytes
    assert CORTEX_M.startup_for(line_bytes).defines == ({"FERRULE_CACHE_LINE": "32u"} if line_bytes else {})
    # the macro has no effect on a core without a data cache
    elf = build(
        programs / "cache.c",
        board,
        toolchain("arm-none-eabi-gcc"),
        tmp_path,
        **CORTEX_M.startup_for(line_bytes or 32).defines,
    )
    with engine("unicorn").start(Machine(board=board, elf=elf)) as session, pytest.raises(EngineError) as caught:
        session.channel().read(1, 10)
    assert caught.value.report is not None
    assert bool(caught.value.report.registers["r4"] & DATA_CACHE_ON) is bool(line_bytes)
