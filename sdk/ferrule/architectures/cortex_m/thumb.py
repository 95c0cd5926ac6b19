# SPDX-License-Identifier: Apache-2.0
"""The effects of Thumb instructions on the stack pointer and on the flow of control (Armv8-M ARM, C1 and C2)."""

from __future__ import annotations

from ferrule._typing import override
from ferrule.architectures.instructions import PLAIN, Effect, Flow, Instructions, Words

WIDE = 0xE800
"""First halfwords from this value on begin an instruction of 32 bits (Armv7-M ARM, A5.1)."""
_SP, _LR, _PC = 13, 14, 15
_ZERO_REGISTER = 15
_UNCONDITIONAL = 0xE
"""From this condition on, the encoding of B means UDF and SVC."""
_STACK_REGISTERS = {0x08, 0x09, 0x14, 0x88, 0x89, 0x94}
"""MSP, PSP and CONTROL, which selects one of them, in the encoding of MSR; also those of the Non-secure state."""


_UNKNOWN_SP = Effect(sets_sp=True)
_END = Effect(Flow.END)


def effect(address: int, first: int, second: int) -> Effect:
    """Return the effect of the instruction at an address; `second` counts only for one of 32 bits."""
    return _narrow(address, first) if first < WIDE else _wide(address, first, second)


def selects_zero(first: int, second: int) -> bool:
    """Return whether it is CSEL, CSINC, CSINV or CSNEG with the zero register, such as CSET (Armv8-M ARM, C2.4)."""
    is_select = first & 0xFFF0 == 0xEA50 and second & 0xC000 == 0x8000
    return is_select and _ZERO_REGISTER in {first & 0xF, second & 0xF}


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _narrow(address: int, word: int) -> Effect:
    top = word >> 12
    if top == 0xB:
        return _miscellaneous(address, word)
    if top == 0xD:
        condition = word >> 8 & 0xF
        if condition >= _UNCONDITIONAL:
            return _END if condition == _UNCONDITIONAL else PLAIN  # UDF, SVC
        return Effect(Flow.BRANCH_IF, address + 4 + 2 * _signed(word & 0xFF, 8))
    if top == 0xE:
        return Effect(Flow.BRANCH, address + 4 + 2 * _signed(word & 0x7FF, 11))
    if word & 0xFC00 == 0x4400:
        return _high_registers(word)
    return PLAIN


def _high_registers(word: int) -> Effect:
    operation, register = word >> 8 & 3, word >> 3 & 0xF
    if operation == 3:
        if word & 0x80:
            return Effect(Flow.POINTER_CALL, register)
        return _END if register == _LR else Effect(Flow.POINTER_JUMP, register)
    destination = (word >> 4 & 8) | (word & 7)
    if operation == 1 or destination < _SP or destination == _LR:
        return PLAIN  # CMP, or a destination that is neither sp nor pc
    if destination == _SP:
        return _UNKNOWN_SP
    return _END if operation == 2 and register == _LR else Effect(Flow.POINTER_JUMP, register)


def _miscellaneous(address: int, word: int) -> Effect:
    kind = word >> 8 & 0xF
    if kind == 0:
        size = 4 * (word & 0x7F)
        return Effect(pushed=size if word & 0x80 else -size)
    if kind in {0x4, 0x5}:
        return Effect(pushed=4 * (word & 0x1FF).bit_count())
    if kind in {0xC, 0xD}:
        return Effect(Flow.END if kind == 0xD else Flow.NEXT, pushed=-4 * (word & 0x1FF).bit_count())
    if kind & 0x5 == 0x1:
        return Effect(Flow.BRANCH_IF, address + 4 + ((word >> 3 & 0x1F) << 1 | (word & 0x200) >> 3))
    if kind == 0xF and word & 0xF:
        then, mask = word >> 4 & 1, word & 0xF
        last = (mask & -mask).bit_length() - 1  # the lowest bit that is set ends the mask
        return Effect(conditional=(True, *((mask >> bit & 1) == then for bit in range(3, last, -1))))
    return PLAIN


def _wide(address: int, first: int, second: int) -> Effect:
    group = first >> 11
    if group == 0x1E and second & 0x8000:
        return _branch_or_control(address, first, second)
    if group == 0x1E:
        return _immediate(first, second)
    if first & 0xFE40 == 0xE800:
        return _multiple(first, second)
    if first & 0xFE40 == 0xE840:
        return _dual(first, second)
    # of data-processing instructions that begin with 0xFA, only shifts and extensions (Armv7-M ARM, A5.3.12)
    if first & 0xFE00 == 0xEA00 or first & 0xFF80 == 0xFA00:
        return _UNKNOWN_SP if second >> 8 & 0xF == _SP else PLAIN
    if first & 0xEE00 == 0xEC00:
        return _vector(first, second)
    if first & 0xFE00 == 0xF800:
        return _single(first, second)
    return PLAIN


def _branch_or_control(address: int, first: int, second: int) -> Effect:
    sign, one, two = first >> 10 & 1, second >> 13 & 1, second >> 11 & 1
    form = second & 0x5000
    if form in {0x1000, 0x5000}:
        bits = sign << 23 | (one == sign) << 22 | (two == sign) << 21 | (first & 0x3FF) << 11 | second & 0x7FF
        return Effect(Flow.CALL if form == 0x5000 else Flow.BRANCH, address + 4 + 2 * _signed(bits, 24))
    if form == 0x4000:
        return _loop(address, first, second)
    if first >> 7 & 7 != 7:
        bits = sign << 19 | two << 18 | one << 17 | (first & 0x3F) << 11 | second & 0x7FF
        return Effect(Flow.BRANCH_IF, address + 4 + 2 * _signed(bits, 20))
    if first & 0xFFF0 == 0xF7F0 and second & 0xF000 == 0xA000:
        return _END  # UDF
    if first & 0xFFE0 == 0xF380 and second & 0xFF in _STACK_REGISTERS:
        return _UNKNOWN_SP
    return PLAIN


def _loop(address: int, first: int, second: int) -> Effect:
    """Return the effect of an instruction of low-overhead loops (Armv8.1-M): WLS and LE branch, DLS does not."""
    distance = (second & 0x7FE) << 1 | (second & 0x800) >> 10
    if second & 0x2000 or not second & 1:
        return PLAIN
    backward = first & 0xF == _PC
    return Effect(Flow.BRANCH_IF, address + 4 + (-distance if backward else distance))


def _immediate(first: int, second: int) -> Effect:
    if second >> 8 & 0xF != _SP:
        return PLAIN
    operation = first >> 4 & 0x3F
    coded = (first & 0x400) << 1 | (second & 0x7000) >> 4 | second & 0xFF
    if first & 0xF != _SP:
        return _UNKNOWN_SP
    if operation & 0x20:  # plain binary immediates: ADDW and SUBW
        size = {0x20: -coded, 0x2A: coded}.get(operation)
    else:
        size = {0x10: -_expand(coded), 0x1A: _expand(coded)}.get(operation & 0x1E)
    return _UNKNOWN_SP if size is None else Effect(pushed=size)


def _expand(coded: int) -> int:
    """Return the constant that twelve bits of an instruction denote (Armv8-M ARM, ThumbExpandImm)."""
    byte = coded & 0xFF
    if coded < 0x400:
        return byte * (1, 0x0001_0001, 0x0100_0100, 0x0101_0101)[coded >> 8]
    value, turn = 0x80 | coded & 0x7F, coded >> 7
    return (value >> turn | value << (32 - turn)) & 0xFFFF_FFFF


def _multiple(first: int, second: int) -> Effect:
    base, loads = first & 0xF, bool(first & 0x10)
    flow = Flow.NEXT
    if loads and second & 0x8000:
        flow = Flow.END if base == _SP else Flow.POINTER_JUMP
    if not first & 0x20 or base != _SP:
        return Effect(flow)
    size = 4 * second.bit_count()
    return Effect(flow, pushed=-size if first & 0x80 else size)


def _dual(first: int, second: int) -> Effect:
    if first & 0xFFF0 == 0xE8D0 and second & 0xFFE0 == 0xF000:
        return Effect(Flow.TABLE, 2 if second & 0x10 else 1) if first & 0xF == _PC else Effect(Flow.POINTER_JUMP)
    if first & 0x20 and first & 0xF == _SP:
        size = 4 * (second & 0xFF)
        return Effect(pushed=-size if first & 0x80 else size)
    return PLAIN


def _vector(first: int, second: int) -> Effect:
    """Return the effect of an access by a floating-point or vector instruction, which may change its base."""
    if not first & 0x20 or first & 0xF != _SP or first & 0x180 == 0:
        return PLAIN
    if first & 0x1000:
        return _UNKNOWN_SP  # interleaving accesses
    vector = second >> 9 & 7 == 7
    size = (second & 0x7F) << (second >> 7 & 3) if vector else 4 * (second & 0xFF)
    return Effect(pushed=-size if first & 0x80 else size)


def _single(first: int, second: int) -> Effect:
    is_word_load = first & 0x70 == 0x50
    base, register = first & 0xF, second >> 12
    pushed = 0
    if base == _SP and not first & 0x80 and second & 0x900 == 0x900:
        size = second & 0xFF
        pushed = -size if second & 0x200 else size
    if is_word_load and register == _PC:
        return Effect(Flow.END if base == _SP and pushed else Flow.POINTER_JUMP, pushed=pushed)
    return Effect(pushed=pushed, sets_sp=is_word_load and register == _SP)


def _moves(words: tuple[int, int], operation: int) -> bool:
    """Return whether an instruction is a MOVW or MOVT of ip."""
    return words[0] & 0xFBF0 == operation and words[1] & 0x8F00 == 0x0C00


def _constant(words: tuple[int, int]) -> int:
    first, second = words
    return (first & 0xF) << 12 | (first & 0x400) << 1 | (second & 0x7000) >> 4 | second & 0xFF


class Thumb(Instructions):
    """The instructions of M-profile cores."""

    mark = "$t"
    calls = frozenset({10, 30, 51, 52, 102, 103})
    """ELF for the Arm architecture: THM_CALL, THM_JUMP24, JUMP19 and so on."""
    unwinding = 0x7000_0001

    @override
    def is_wide(self, first: int) -> bool:
        return first >= WIDE

    @override
    def effect(self, address: int, first: int, second: int) -> Effect:
        return effect(address, first, second)

    @override
    def thunk(self, code: Words, entry: int) -> int | None:
        """Return the target of a function that loads a constant address and jumps to it."""
        low = code.instruction(entry)
        if low == (0xF8DF, 0xF000):  # ldr.w pc, [pc]
            return (code.word((entry + 4) & ~3) or 0) & ~1
        high = code.instruction(entry + 4)
        if low is None or high is None or not _moves(low, 0xF240) or not _moves(high, 0xF2C0):
            return None
        target = _constant(high) << 16 | _constant(low)
        jump = code.instruction(entry + 8)
        if jump == (0x44FC, 0):  # add ip, pc
            target += entry + 12
            jump = code.instruction(entry + 10)
        return target & 0xFFFF_FFFE if jump == (0x4760, 0) else None
