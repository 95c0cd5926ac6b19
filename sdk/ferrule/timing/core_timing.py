# SPDX-License-Identifier: Apache-2.0
"""The cycles of a core's instructions, read from the file that states each of them with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec

from ferrule._frozen import frozen
from ferrule.documents import convert, read_toml
from ferrule.errors import FerruleError

FOLDER = Path(__file__).parent / "cores"
MOST_CYCLES = 100
_Cycles = Annotated[int, msgspec.Meta(ge=0, le=MOST_CYCLES)]


class Basis(StrEnum):
    """What a number rests on."""

    PUBLISHED = "published"
    """The maker of the core states it."""
    MEASURED = "measured"
    """Others measured it and published the measurement."""
    COMPILER = "compiler"
    """A compiler's model of the core states it."""
    FITTED = "fitted"
    """Chosen so that published figures come out."""
    ASSUMED = "assumed"
    """Nothing is published; the reason is stated."""


@frozen
class CoreTiming:
    """The numbers of a core's model of time, in cycles where nothing else is said, in memories without wait states.

    An instruction's number is the time until the next one may begin. Its latency counts from its own begin until
    another instruction may use its result. Numbers that a core's file does not state are 0.
    """

    core: str
    """Arm's name in lower case: `cortex-m4`."""
    alu: int
    """Moves, shifts, comparisons, sums and logic without an inline shift."""
    nop: int
    field: int
    """Bit fields, extensions, reversals, saturation, and the DSP instructions without a product."""
    multiply: int
    """Products of 32 bits."""
    load: int
    store: int
    """With a constant offset, for which Arm states one cycle on cores with a store buffer."""
    multiple: int
    """LDM, STM, PUSH and POP take this, and more for the words."""
    multiple_words: int
    """Words that these move in a cycle."""
    branch: int
    """A branch that is not taken; a taken one takes the refill, too."""
    refill_direct: int
    """B, CBZ and others with a constant target; if the core predicts branches, one that was predicted."""
    refill_link: int
    """BL."""
    refill_indirect: int
    """BX, BLX and writes to the program counter."""
    refill_load: int
    """Loads of the program counter, such as by POP, and table branches."""
    special: int
    """MRS and MSR."""
    state: int
    """CPS."""
    barrier: int
    exception_entry: int
    exception_exit: int
    exception_chain: int
    """From the end of a handler to the next handler."""
    shifted: int = 0
    """Data processing with an inline shift or a shifted constant."""
    accumulate: int = 0
    """Products of 32 bits with an addend."""
    multiply_long: int = 0
    accumulate_long: int = 0
    divide_least: int = 0
    divide_most: int = 0
    load_double: int = 0
    store_double: int = 0
    store_register: int = 0
    """What a store takes beyond `store` if its offset is a register."""
    table_branch: int = 0
    it: int = 0
    it_folds: int = 0
    """1: an IT after an instruction of 16 bits takes no time."""
    refill_unaligned: int = 0
    """What a jump takes longer if its target has 32 bits and is at no multiple of 4."""
    load_pipelined: int = 0
    """Cycles by which a load or store of one word is shorter right after such a load."""
    load_after_store: int = 0
    """Cycles by which a load is longer right after a store of one word."""
    address_early: int = 0
    """Cycles by which the registers of an address are needed earlier than others."""
    shifted_early: int = 0
    """The same for registers that are shifted inline, extracted from or extended."""
    alu_latency: int = 0
    shifted_latency: int = 0
    field_latency: int = 0
    multiply_latency: int = 0
    """Of all products."""
    load_latency: int = 0
    load_narrow_latency: int = 0
    """Of loads of bytes and halfwords."""
    load_multiply: int = 0
    """Cycles that a product waits longer than others for a load."""
    accumulate_late: int = 0
    """Cycles by which the addend of a product is needed later than its factors."""
    store_late: int = 0
    """Cycles by which the stored value is needed later than other operands."""
    multiply_flags: int = 0
    """What a product takes longer if it sets the flags."""
    unaligned: int = 0
    """What an access takes longer at an address that is no multiple of its size; counted on boards with waits only."""
    float_add: int = 0
    """Single precision: sums, conversions, rounding, minimum and maximum."""
    float_multiply: int = 0
    float_accumulate: int = 0
    """VMLA and others that round the product."""
    float_fused: int = 0
    """VFMA and others."""
    float_divide: int = 0
    """Until the next floating-point instruction may begin."""
    float_root: int = 0
    float_holds: int = 0
    """1: other instructions wait for a division or a root, too."""
    float_move: int = 0
    """Moves, absolute values, negations and comparisons of floating-point registers."""
    float_transfer: int = 0
    """Between a core register and a floating-point register."""
    float_transfer_double: int = 0
    """Between two core registers and two floating-point registers."""
    float_status: int = 0
    """VMRS and VMSR."""
    float_load: int = 0
    float_store: int = 0
    float_load_double: int = 0
    float_store_double: int = 0
    float_multiple: int = 0
    """As `multiple`, for VLDM, VSTM, VPUSH and VPOP."""
    float_multiple_words: int = 0
    float_add_latency: int = 0
    float_multiply_latency: int = 0
    float_accumulate_latency: int = 0
    float_fused_latency: int = 0
    float_move_latency: int = 0
    float_transfer_latency: int = 0
    float_load_latency: int = 0
    float_accumulate_late: int = 0
    """As `accumulate_late`."""
    float_fused_late: int = 0
    float_store_late: int = 0
    float_unit: int = 0
    """Cycles in which no floating-point arithmetic begins after a product with an addend."""
    double_add: int = 0
    """Double precision, from here."""
    double_multiply: int = 0
    double_accumulate: int = 0
    double_divide: int = 0
    double_add_latency: int = 0
    double_multiply_latency: int = 0
    double_accumulate_latency: int = 0
    issue: int = 0
    """1: a NOP or branch of 16 bits begins with another instruction of 16 bits, also a NOP with a NOP; 2: two
    instructions begin together unless both need the same unit, or one is of those that begin alone."""
    pair_loads: int = 0
    """1: two loads begin together if they are known to be of an even and an odd word; 2: also if nothing is known."""
    alu_forward: int = 0
    """Cycles by which the result of `alu` is there earlier, if its operands were there a cycle before."""
    flags_refill: int = 0
    """What a taken branch takes longer that begins together with the instruction that sets the flags."""
    predictor_bits: Annotated[int, msgspec.Meta(ge=0, le=12)] = 0
    """Bits of a branch's address by which its history of four states is found; 0: branches are not predicted."""
    mispredict: int = 0
    """A conditional branch that was predicted wrongly."""


PARAMETERS = tuple(each.name for each in fields(CoreTiming) if each.name != "core")
"""The names of the numbers, in the order of `struct ferrule_core_timing`."""
OPTIONAL = (
    *("store_register", "it_folds", "refill_unaligned", "load_pipelined", "load_after_store", "address_early"),
    *("shifted_early", "load_multiply", "accumulate_late", "store_late", "multiply_flags", "float_holds"),
    *("float_accumulate_late", "float_fused_late", "float_store_late", "float_unit"),
    *("issue", "pair_loads", "alu_forward", "flags_refill"),
)
"""Numbers of effects that not all cores have."""
_FIRST_OF_SETS = ("alu", "shifted", "float_add", "double_add", "predictor_bits")


def _sets() -> tuple[tuple[str, ...], ...]:
    """Return the names that a file states together or not at all; those of the first set it always states."""
    starts = [PARAMETERS.index(name) for name in _FIRST_OF_SETS]
    sets = (PARAMETERS[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True))
    return tuple(tuple(name for name in names if name not in OPTIONAL) for names in sets)


SETS = _sets()


class _Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of one source."""

    source: str
    basis: Basis
    cycles: dict[str, _Cycles]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A core's file."""

    core: str
    group: list[_Group]


def stated(path: Path) -> Mapping[str, int]:
    """Return the numbers that a core's file states.

    Raises:
        FerruleError: the file cannot be read, or a key is missing, unknown, stated twice or out of its range.
    """
    file = convert(str(path), read_toml(path), _File)
    if file.core != path.stem:
        raise FerruleError(f"{path}: core is '{file.core}', expected '{path.stem}' as in the file's name")
    found: dict[str, int] = {}
    for group in file.group:
        for name, value in group.cycles.items():
            if name not in PARAMETERS:
                raise FerruleError(f"{path}: unknown key '{name}'", hint=f"known: {', '.join(PARAMETERS)}")
            if name in found:
                raise FerruleError(f"{path}: key '{name}' is stated twice, as {found[name]} and as {value}")
            found[name] = value
    for number, names in enumerate(SETS):
        lacking = [name for name in names if name not in found]
        if lacking and (number == 0 or len(lacking) < len(names)):
            raise FerruleError(f"{path}: these keys are missing: {', '.join(lacking)}")
    return found


def read_core_timing(path: Path) -> CoreTiming:
    """Read a core's file; FerruleError as from `stated`."""
    found = {"core": path.stem, **stated(path)}
    return convert(str(path), found, CoreTiming)


@cache
def timed_cores() -> tuple[str, ...]:
    """Return the names of the cores with a model, in alphabetical order."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def core_timing(core: str) -> CoreTiming | None:
    """Return the cycles of a core by Arm's name in lower case; None for a core without a model."""
    return read_core_timing(FOLDER / f"{core}.toml") if core in timed_cores() else None
