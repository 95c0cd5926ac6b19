# SPDX-License-Identifier: Apache-2.0
"""Unaligned accesses: what the C hooks derive from a block's code holds when unicorn executes it."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from typing import Any

import pytest
from needs import require_module

from ferrule.architectures import CORTEX_M
from ferrule.emulation import Engine, EngineError, Machine
from ferrule.emulation.unicorn.library import load_hooks

pytestmark = [pytest.mark.cc, pytest.mark.emu]

CODE, RAM, RAM_BYTES = 0x0800_0000, 0x2000_0000, 1 << 16
REGISTERS = (*(f"R{number}" for number in range(13)), "SP", "LR")
SP = 13
WIDE = (0xE800, 0xE840, 0xE900, 0xE940, 0xEA00, 0xEC00, 0xF000, 0xF100, 0xF200, 0xF800, 0xFA00, 0xFB00)
"""First halfwords of the kinds of instructions with 32 bits, without branches."""
Program = list[bytes]


class Alignment(ctypes.Structure):
    """struct ferrule_alignment."""

    _fields_ = (("needed", ctypes.c_uint16), ("kept", ctypes.c_uint16), ("gained", ctypes.c_uint16))


class Site(ctypes.Structure):
    """struct ferrule_site."""

    _fields_ = tuple((name, ctypes.c_uint32) for name in ("mask", "base", "offset", "index", "shift"))


IS_CHECKED = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32)


@pytest.fixture(scope="module")
def hooks(host_cc: tuple[str, ...]) -> ctypes.CDLL:
    """The loaded library of hooks."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    library = load_hooks(CORTEX_M.model)
    library.ferrule_site_of.restype = Site
    library.ferrule_alignment_decode.restype = ctypes.c_uint32
    library.ferrule_alignment_decode.argtypes = (
        ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32,
        IS_CHECKED, ctypes.c_void_p, ctypes.POINTER(Alignment),
    )  # fmt: skip
    return library


def _narrow(draw: random.Random) -> bytes:
    kinds = (
        draw.randrange(0x4700),  # shifts, additions, data processing
        0x1C00 | draw.randrange(0x400),  # additions of 3 bits
        0x2000 | draw.randrange(0x2000),  # additions of 8 bits
        0x4600 | draw.randrange(0x100),  # moves
        0x4800 | draw.randrange(0x6800),  # loads and stores, ADR
        0xC000 | draw.randrange(0x1000),  # LDM, STM
        0xBF00 | draw.randrange(0x100),  # IT
        0xB200 | draw.randrange(0x100),
        0xBA00 | draw.randrange(0x100),
    )
    code = draw.choice(kinds)
    if code & 0xFD87 == 0x4487:  # MOV or ADD to pc is a jump, which ends a block
        code ^= 0x80
    return code.to_bytes(2, "little")


def _wide(draw: random.Random) -> bytes:
    first = draw.choice(WIDE)
    second = draw.randrange(0x8000) if draw.randrange(2) else draw.randrange(0x1000) | draw.randrange(8) << 12
    return (first | draw.randrange(0x200)).to_bytes(2, "little") + second.to_bytes(2, "little")


class Core:
    """A bare Cortex-M4 in unicorn with some memory, and registers that are mostly addresses."""

    def __init__(self) -> None:
        import unicorn
        from unicorn import arm_const

        self._unicorn, self._arm = unicorn, arm_const
        self._uc: Any = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
        self._uc.ctl_set_cpu_model(arm_const.UC_CPU_ARM_CORTEX_M4)
        self._uc.mem_map(CODE, 1 << 12)
        self._uc.mem_map(RAM, RAM_BYTES)
        self._uc.mem_write(RAM, random.Random(0).randbytes(RAM_BYTES))
        self._uc.hook_add(unicorn.UC_HOOK_CODE, self._see)
        self.seen: list[tuple[int, list[int]]] = []

    def registers(self) -> list[int]:
        """Return r0 to lr."""
        return [self._uc.reg_read(getattr(self._arm, f"UC_ARM_REG_{name}")) for name in REGISTERS]

    def _see(self, _uc: object, address: int, _size: int, _context: object) -> None:
        self.seen.append((address - CODE, self.registers()))

    def execute(self, program: Program, values: list[int], flags: int) -> bool:
        """Execute the program; return whether it reached its end without a jump or an SP that no core can hold."""
        code = b"".join(program)
        self.seen.clear()
        self._uc.mem_write(CODE, code + b"\x00\xbf" * 8)
        self._uc.ctl_flush_tb()
        for name, value in zip(REGISTERS, values, strict=True):
            self._uc.reg_write(getattr(self._arm, f"UC_ARM_REG_{name}"), value)
        self._uc.reg_write(self._arm.UC_ARM_REG_XPSR, 1 << 24 | flags << 28)
        try:
            self._uc.emu_start(CODE | 1, CODE + len(code), count=len(program))
        except self._unicorn.UcError:
            return False
        states = [*(registers for _, registers in self.seen), self.registers()]
        starts = {sum(map(len, program[:number])) for number in range(len(program))}
        return (
            self._uc.reg_read(self._arm.UC_ARM_REG_PC) == CODE + len(code)
            and all(offset in starts for offset, _ in self.seen)
            and all(registers[SP] % 4 == 0 for registers in states)
        )


@pytest.mark.parametrize("rounds", [1500, pytest.param(60_000, marks=pytest.mark.nightly)])
def test_what_a_block_tells_holds_when_it_executes(hooks: ctypes.CDLL, rounds: int) -> None:
    draw, core = random.Random(rounds), Core()
    executed = sites = 0
    for _ in range(rounds):
        program = [(_wide if draw.randrange(3) == 0 else _narrow)(draw) for _ in range(draw.randrange(1, 7))]
        found = Alignment()
        while True:  # up to the first instruction whose address is unknown
            code = b"".join(program)
            none_is = IS_CHECKED(lambda _context, _offset: 0)
            end = hooks.ferrule_alignment_decode(code, len(code), 0, 0, none_is, None, ctypes.byref(found))
            if end == len(code):
                break
            while sum(map(len, program)) > end:
                program.pop()
        values = [RAM + 0x4000 + draw.randrange(0x8000) for _ in REGISTERS]
        for number in range(len(REGISTERS)):
            if number == SP or found.needed >> number & 1 or draw.randrange(2):
                values[number] &= ~3
        if not program or not core.execute(program, values, draw.randrange(16)):
            continue
        executed += 1
        for number, (before, after) in enumerate(zip(values, core.registers(), strict=True)):
            if found.gained >> number & 1 or (found.kept >> number & 1 and before % 4 == 0):
                assert after % 4 == 0, (code.hex(), number)
        for offset, registers in core.seen:
            halves = [int.from_bytes(code[at : at + 2], "little") for at in (offset, offset + 2)]
            site = hooks.ferrule_site_of(halves[0], halves[1] if halves[0] >= 0xE800 else 0, 0)
            if site.mask:
                sites += 1
                assert registers[site.base] & site.mask == 0, (code.hex(), offset)
    assert executed > rounds // 6
    assert sites > rounds // 60


def test_the_report_names_the_base(unicorn: Engine, build: Callable[..., Machine]) -> None:
    with unicorn.start(build("misdeed")) as session:
        channel = session.channel()
        assert channel.read(1, 10) == b"!"
        channel.write(b"a")
        with pytest.raises(EngineError) as caught:
            channel.read(1, 10)
    report = caught.value.report
    assert report is not None
    assert "relative to 0x2000_0001, which is not a multiple of 4" in report.reason
    assert report.registers["r3"] == 0x2000_0001
