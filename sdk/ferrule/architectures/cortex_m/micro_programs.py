# SPDX-License-Identifier: Apache-2.0
"""The micro-programs of a calibration in Thumb, as functions with the areas of RAM and flash in r0 and r1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ferrule.architectures.cpu import Cpu
from ferrule.architectures.micro_program import Areas, Group, MicroProgram

_STEPS = 4096
"""About how many instructions a program executes, unless it has to walk through more of a memory."""
_LEAST_PASSES = 6
"""Passes over code or data, of which the first may fill a cache."""
_LOADS = 32
"""Words that one pass of a walk loads, of the 128 bytes that the shortest encoding of a load reaches."""
_CONTROL_BYTES = 8
"""Most bytes of the two instructions that end a loop."""
_FINE_BYTES = 4096
"""Bytes of a loop from which on only powers of two are tried."""
_NARROW_REACH = 240
"""Bytes of a loop from which on its branch needs another encoding (256 less its own)."""
_BASELINE_REACH = 1536
"""Bytes of the longest loop on Armv6-M, whose unconditional branch reaches 2,048."""


def longest_loop_bytes(cpu: Cpu) -> int | None:
    """Return the bytes of the longest loop that a branch of the core reaches; None if that is no limit."""
    return _BASELINE_REACH if cpu.features.baseline else None


def micro_programs(cpu: Cpu, used: Areas) -> tuple[MicroProgram, ...]:
    """Return the programs for a core, in the order in which it runs them."""
    baseline = cpu.features.baseline
    return (
        *_loops(used, baseline=baseline),
        *_branches(baseline=baseline),
        *_walks("flash", Group.FLASH, "r1", used.flash_bytes),
        *_walks("ram", Group.RAM, "r0", used.ram_bytes),
        *_accesses(),
        *_arithmetic(cpu),
    )


def _loop(
    name: str,
    what: str,
    group: Group,
    body: Sequence[str],
    *,
    body_bytes: int,
    count: int,
    baseline: bool = False,
    first: Sequence[str] = (),
    first_bytes: int = 0,
    last: Sequence[str] = (),
) -> MicroProgram:
    """Return a loop of `count` passes; `first` is before the loop, and `last` behind its end, where nothing runs."""
    constant, constant_bytes = _constant("r4", count)
    back: tuple[str, ...] = ("beq 2f", "b 1b", "2:") if baseline else ("bne.w 1b",)
    if body_bytes < _NARROW_REACH:
        back = ("bne 1b",)
    lines = (
        "push {r4, r5, r6, r7, lr}",
        *constant,
        *first,
        "1:",
        *body,
        "subs r4, #1",
        *back,
        "pop {r4, r5, r6, r7, pc}",
    )
    return MicroProgram(
        name=name,
        what=what,
        group=group,
        lines=(*lines, *last),
        before_loop=2 + constant_bytes + first_bytes,
    )


def _constant(register: str, value: int) -> tuple[tuple[str, ...], int]:
    """Return instructions that set a register to a number, at least about that of a loop's passes, and their bytes."""
    shift = max(0, value.bit_length() - 8)
    move = f"movs {register}, #{value >> shift}"
    return ((move, f"lsls {register}, {register}, #{shift}"), 4) if shift else ((move,), 2)


def _repeated(count: int, *lines: str) -> tuple[str, ...]:
    return lines if count == 1 else (f".rept {count}", *lines, ".endr")


def _passes(instructions: int) -> int:
    least = _LEAST_PASSES if instructions <= _STEPS // 2 else _LEAST_PASSES // 2
    return max(least, _STEPS // instructions)


def _sizes(first: int, last: int) -> Iterator[int]:
    """Yield the powers of two from `first` to `last`, and between the small ones the sizes half-way."""
    size = first
    while size <= last:
        yield size
        if size < _FINE_BYTES and size * 3 // 2 <= last:
            yield size * 3 // 2
        size *= 2


def _loops(used: Areas, *, baseline: bool) -> Iterator[MicroProgram]:
    """Yield loops that fit a cache of instructions or do not, and one pass over code that is in no cache."""
    for size in (16, *_sizes(64, used.code_bytes)):
        pairs = (size - (0 if size == 16 else _CONTROL_BYTES)) // 4
        yield _loop(
            f"loop_{size}",
            f"a loop of {size} bytes",
            Group.FETCH,
            _repeated(pairs, "adds r2, #1", "adds r3, #1"),
            body_bytes=4 * pairs,
            count=_passes(2 * pairs),
            baseline=baseline,
        )
    pairs = min(used.code_bytes, 4096) // 4 - 2
    yield _loop(
        "straight",
        f"one pass over {4 * pairs} bytes of code",
        Group.FETCH,
        _repeated(pairs, "adds r2, #1", "adds r3, #1"),
        body_bytes=4 * pairs,
        count=1,
        baseline=baseline,
    )
    yield _loop(
        "loop_unaligned",
        "a loop of 16 bytes at the end of a line",
        Group.FETCH,
        _repeated(4, "adds r2, #1", "adds r3, #1"),
        body_bytes=16,
        count=_passes(8),
        first=_repeated(29, "adds r2, #1"),
        first_bytes=58,
    )
    if baseline:
        return
    for size in (1 << log2 for log2 in range(6, used.code_bytes.bit_length())):
        count = size // 4 - 2
        yield _loop(
            f"wide_{size}",
            f"a loop of {size} bytes with instructions of 32 bits",
            Group.FETCH,
            _repeated(count, "add.w r2, r2, #1"),
            body_bytes=4 * count,
            count=_passes(count),
        )


def _branches(*, baseline: bool) -> Iterator[MicroProgram]:
    """Yield chains of branches that skip parts of lines, or touch few lines of few sets, and calls."""
    near, far = ((4, 32), (8, 32), (16, 32), (32, 32)), ((64, 32), (256, 4), (256, 16), (1024, 2), (1024, 4), (1024, 8))
    for stride, count in near if baseline else (*near, *far):
        hop = ("b 9f", f".skip {stride - 2}", "9:")
        yield _loop(
            f"hops_{stride}_{count}",
            f"{count} branches to {stride} bytes on",
            Group.FETCH,
            _repeated(count, *hop),
            body_bytes=stride * count,
            count=_passes(count),
            baseline=baseline,
        )
    yield _loop(
        "not_taken",
        "conditional branches that are not taken",
        Group.FETCH,
        ("movs r2, #1", *_repeated(16, "beq 3f"), "3:"),
        body_bytes=34,
        count=_passes(17),
    )
    yield _loop(
        "calls",
        "calls of an empty function",
        Group.FETCH,
        _repeated(8, "bl 3f"),
        body_bytes=32,
        count=_passes(16),
        last=("3:", "bx lr"),
    )


def _walks(kind: str, group: Group, base: str, area_bytes: int) -> Iterator[MicroProgram]:
    """Yield loads of the same words again and again, and walks through areas, word by word and line by line."""
    start = f"mov r5, {base}"
    yield _loop(
        f"{kind}_same",
        f"loads of the same 64 bytes of {kind}",
        group,
        _loads("ldr", range(0, 64, 4)),
        body_bytes=32,
        count=_passes(16),
        first=(start,),
        first_bytes=2,
    )
    for size in (*(each for each in (128, 256, 512, 4096, 16_384) if each < area_bytes), area_bytes):
        for stride in (4, 32):
            offsets = range(0, 128, stride)
            mask, mask_bytes = _constant("r7", size // 128)
            advance = ("adds r6, #128", "ands r6, r7", f"adds r5, {base}, r6")
            yield _loop(
                f"{kind}_walk_{size}_{stride}",
                f"loads of {size} bytes of {kind} in steps of {stride}",
                group,
                (*_loads("ldr", offsets), *advance),
                body_bytes=2 * len(offsets) + 6,
                count=max(_passes(len(offsets)), _LEAST_PASSES * size // 128),
                first=(start, "movs r6, #0", *mask, "lsls r7, r7, #7", "subs r7, #1"),
                first_bytes=2 + 2 + mask_bytes + 4,
            )
    yield _loop(
        f"{kind}_bytes",
        f"loads of bytes of {kind}",
        group,
        _loads("ldrb", range(16)),
        body_bytes=32,
        count=_passes(16),
        first=(start,),
        first_bytes=2,
    )
    yield _loop(
        f"{kind}_multiple",
        f"loads of four words at once of {kind}",
        group,
        (start, *_repeated(8, "ldmia r5!, {r2, r3, r6, r7}")),
        body_bytes=18,
        count=_passes(40),
    )
    yield _loop(
        f"{kind}_dependent",
        f"loads of {kind} whose value the next instruction needs",
        group,
        _repeated(8, "ldr r2, [r5]", "adds r3, r3, r2"),
        body_bytes=32,
        count=_passes(16),
        first=(start,),
        first_bytes=2,
    )


def _loads(operation: str, offsets: Iterable[int]) -> tuple[str, ...]:
    """Return loads from r5 at some offsets into r2 and r3 in turn, none of which depends on another."""
    return tuple(f"{operation} r{2 + index % 2}, [r5, #{offset}]" for index, offset in enumerate(offsets))


def _accesses() -> Iterator[MicroProgram]:
    """Yield stores, copies, literals and sums of products."""
    ram, four = ("mov r5, r0",), "{r2, r3, r6, r7}"
    apart = _repeated(8, "str r2, [r5]", "adds r2, #1", "adds r3, #1")
    for name, what, lines, size in (
        ("stores", "stores of words", tuple(f"str r2, [r5, #{4 * index}]" for index in range(16)), 32),
        ("store_bytes", "stores of bytes", tuple(f"strb r2, [r5, #{index}]" for index in range(16)), 32),
        ("stores_apart", "stores with two instructions between them", apart, 48),
        ("store_multiple", "stores of four words at once", (*ram, *_repeated(8, f"stmia r5!, {four}")), 18),
        ("stack", "four registers to the stack and back", _repeated(4, f"push {four}", f"pop {four}"), 16),
        ("store_load", "loads of words that were stored", _repeated(8, "str r2, [r5]", "ldr r2, [r5]"), 32),
    ):  # fmt: skip
        yield _loop(name, what, Group.RAM, lines, body_bytes=size, count=_passes(size // 2), first=ram, first_bytes=2)
    yield _loop(
        "copy",
        "words from flash to RAM",
        Group.FLASH,
        tuple(line for at in range(0, 64, 4) for line in (f"ldr r2, [r1, #{at}]", f"str r2, [r0, #{at}]")),
        body_bytes=64,
        count=_passes(32),
    )
    yield _loop(
        "literals",
        "loads of constants beside the code",
        Group.FLASH,
        tuple(f"ldr r{2 + index % 2}, [pc, #{24 + 4 * index - (2 * index + 4) // 4 * 4}]" for index in range(8)),
        body_bytes=16,
        count=_passes(8),
        last=(".balign 4", *_repeated(8, ".word 0x01020304")),
    )
    yield _loop(
        "products",
        "a sum of products of words in RAM and flash",
        Group.FLASH,
        tuple(
            line
            for at in range(0, 64, 4)
            for line in (f"ldr r2, [r0, #{at}]", f"ldr r3, [r1, #{at}]", "muls r2, r3, r2", "adds r6, r6, r2")
        ),
        body_bytes=128,
        count=_passes(64),
    )


def _arithmetic(cpu: Cpu) -> Iterator[MicroProgram]:
    """Yield the core's own work, of which none depends on a memory but for its code."""
    small, large = ("movs r5, #200", "movs r6, #9"), ("movs r6, #0", "mvns r5, r6", "movs r6, #3")
    rows: list[tuple[str, str, str, int, tuple[str, ...]]] = [("multiply", "products", "muls r2, r3, r2", 2, ())]
    if not cpu.features.baseline:
        rows += [
            ("multiply_add", "products that are added", "mla r2, r3, r5, r2", 4, ()),
            ("multiply_long", "products of 64 bits that are added", "smlal r2, r3, r5, r6", 4, ()),
            ("divide_small", "divisions of small numbers", "udiv r2, r5, r6", 4, small),
            ("divide_large", "divisions of large numbers", "udiv r2, r5, r6", 4, large),
        ]
    if cpu.dsp:
        rows.append(("multiply_dual", "sums of two products", "smlad r2, r3, r5, r2", 4, ()))
    for name, what, line, size, first in rows:
        yield _loop(
            name,
            what,
            Group.CORE,
            _repeated(16, line),
            body_bytes=16 * size,
            count=_passes(16),
            first=first,
            first_bytes=2 * len(first),
        )
