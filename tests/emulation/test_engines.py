# SPDX-License-Identifier: Apache-2.0
"""Properties of engines that can be tested without running one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ferrule.architectures import CORTEX_M
from ferrule.architectures.cortex_m.fault_record import FIELDS, fault_record
from ferrule.architectures.state import FAULT_MAGIC
from ferrule.boards import board_names, load_board
from ferrule.emulation import CrashReport, EngineError, Machine, engine, engine_names, fitting_engine
from ferrule.emulation.crash import called_from
from ferrule.emulation.unicorn import engine as unicorn_engine
from ferrule.errors import FerruleError
from ferrule.firmware import Image, Segment, Symbol, read_image

IMAGE = Image(
    segments=(Segment(address=0x100, data=bytes(range(64))),),
    path=Path("firmware.elf"),
    architecture=CORTEX_M,
    entry=0x100,
    sections=(),
    symbols=(
        Symbol(name="reset", address=0x100, size_bytes=0x10, is_function=True),
        Symbol(name="main", address=0x110, size_bytes=0x20, is_function=True),
    ),
)


def test_names() -> None:
    assert engine_names() == ["unicorn", "qemu", "renode", "serial"]
    assert [engine(name).name for name in engine_names()] == engine_names()
    with pytest.raises(FerruleError, match="no engine 'qmeu'") as caught:
        engine("qmeu")
    assert caught.value.hint == "did you mean qemu?"


@pytest.mark.parametrize("board", sorted(board_names()))
def test_the_engine_where_none_is_named_can_run_the_board(board: str) -> None:
    description = load_board(board)
    name = fitting_engine(description)
    assert engine(name).refuses(description) is None
    assert name == ("qemu" if board == "mps3-an547" else "unicorn")


def test_a_fitting_engine_need_not_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another engine has other counters, so that an installation does not choose among them."""
    monkeypatch.setattr(unicorn_engine, "find_spec", lambda _name: None)
    assert fitting_engine(load_board("mps2-an386")) == "unicorn"


def test_missing_unicorn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unicorn_engine, "find_spec", lambda _name: None)
    missing = engine("unicorn").missing()
    assert missing is not None
    assert (missing.hint or "").startswith("pip install 'ferrule[run]'")


def test_the_path_of_a_machine_may_be_a_str() -> None:
    board = load_board("mps2-an386")
    assert Machine(board=board, elf="firmware.elf").elf == Path("firmware.elf")  # type: ignore[arg-type]
    with pytest.raises(FerruleError, match="elf is of type bytes, expected a path"):
        Machine(board=board, elf=b"firmware.elf")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("address", "symbol"),
    [(0x100, "reset"), (0x10E, "reset+0xe"), (0x110, "main"), (0x130, "?"), (0x40, "?")],
)
def test_nearest_symbol(address: int, symbol: str) -> None:
    assert IMAGE.describe(address) == symbol


def test_initial_contents() -> None:
    assert IMAGE.read(0x104, 4) == bytes([4, 5, 6, 7])
    assert IMAGE.read(0x13E, 4) == b""
    assert IMAGE.read(0xFF, 1) == b""


@pytest.mark.parametrize("path", [Path(sys.executable), Path("nowhere.elf")])
def test_not_a_firmware(path: Path) -> None:
    with pytest.raises(FerruleError):
        read_image(path)


def test_report_as_text() -> None:
    report = CrashReport(
        reason="undefined instruction",
        pc=0x1000_0110,
        symbol="main",
        registers={f"r{number}": number for number in range(13)} | {"sp": 0x2000_0000, "pc": 0x1000_0110},
        instruction="udf #0",
        notes=("a note",),
    )
    lines = str(EngineError("", report=report)).splitlines()
    assert lines[0] == "undefined instruction at pc 0x1000_0110 (main): udf #0"
    assert lines[1] == "  a note"
    assert len(lines) == 2 + 3
    assert "sp 20000000" in lines[4]


def test_return_address_belongs_to_the_caller() -> None:
    assert called_from(IMAGE, {"lr": 0x111}).startswith("called from reset+0xe,")


def record(**fields: int) -> list[int]:
    """Return the words of a fault record."""
    return [({"magic": FAULT_MAGIC, "exception": 3} | fields).get(name, 0) for name in FIELDS]


def test_fault_record() -> None:
    assert fault_record(record(magic=0)) is None
    assert fault_record(record()[:-1]) is None
    found = fault_record(record(cfsr=1 << 9 | 1 << 15, bfar=0x7000_0004, sp=0x100, pc=0x42, frame_valid=1))
    assert found is not None
    assert found.reason == "HardFault (bus error on a data access, address 0x7000_0004)"
    assert found.registers["pc"] == 0x42
    assert found.registers["sp"] == 0x120


def test_fault_record_of_a_bad_stack() -> None:
    found = fault_record(record(cfsr=1 << 20, sp=0x10, exception=6))
    assert found is not None
    assert found.reason == "UsageFault (stack limit violation)"
    assert found.registers == {"sp": 0x10}


@pytest.mark.parametrize(("number", "name"), [(11, "SVCall"), (15, "SysTick"), (16, "interrupt 0")])
def test_unhandled_exception(number: int, name: str) -> None:
    found = fault_record(record(exception=number))
    assert found is not None
    assert found.reason.startswith(f"{name}, which the firmware does not handle")


def test_disassembly_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.architectures.cortex_m.architecture.find_spec", lambda _name: None)
    assert CORTEX_M.disassemble(b"\x00\xbf", 0) is None
