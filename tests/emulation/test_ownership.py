# SPDX-License-Identifier: Apache-2.0
"""The check of ownership finds each mistake of an executor and its drivers, and none in those without a mistake.

The firmware is firmware/ownership.c, an executor with four layers on the core and two devices; the host chooses one
mistake of it. Mistakes with the data cache are made on the board whose core has one.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from small_networks import int8_input

import ferrule
from ferrule._typing import override
from ferrule.architectures import CORTEX_M
from ferrule.boards import load_board
from ferrule.devices import Range, Register, RegisterModel, RegisterTable
from ferrule.emulation import (
    AttachedDevice,
    Engine,
    EngineError,
    Machine,
    OwnedBuffer,
    OwnedStep,
    OwnershipError,
    OwnershipPlan,
    Violation,
    engine,
    ownership_plan,
)
from ferrule.emulation.ownership import Violated, ownership_error
from ferrule.emulation.unicorn.guest import Guest
from ferrule.emulation.unicorn.ownership import FIRST_BUFFER, Ownership
from ferrule.errors import FerruleError
from ferrule.firmware import Image, Job, emit, read_image

pytestmark = [pytest.mark.cc, pytest.mark.emu]

Build = Callable[..., Machine]
SOURCE = Path(__file__).parent / "firmware" / "ownership.c"
PLAIN, CACHED = "mps2-an386", "mps2-an500"
BUSY, START = 0, 4
X, A, B, C, S, D, Y = range(7)
PLACES = {"x": (0, 64), "a": (64, 64), "b": (128, 64), "c": (192, 48), "s": (240, 46), "d": (0, 64), "y": (384, 64)}
LAST = {"x": 0, "a": 3, "b": 2, "c": 3, "s": 3, "d": 4, "y": 3}
CORE = "the core"
MISTAKES = re.search(r"enum mistake \{(.*?)\}", SOURCE.read_text(), re.DOTALL)
assert MISTAKES is not None
NUMBERS = {name.strip(): number for number, name in enumerate(MISTAKES[1].split(",")) if name.strip()}

PAGE_BYTES = CORTEX_M.model.unicorn.page_bytes
FOUND = {
    "INPUT_AT_WRONG_OFFSET": (Violation.READS_NOTHING, "first", None, "a"),
    "OUTPUT_AT_WRONG_OFFSET": (Violation.WRITES_OUTSIDE, "first", None, "b"),
    "OUTPUT_BEFORE_ITS_PLACE": (Violation.OVERWRITES, "first", None, "x"),
    "WRITES_UNUSED_BYTES": (Violation.WRITES_OUTSIDE, "first", None, ""),
    "READS_UNUSED_BYTES": (Violation.READS_NOTHING, "first", None, ""),
    "READS_ANOTHER_LAYERS_TENSOR": (Violation.READS_OTHER, "fourth", None, "b"),
    "READS_A_DEAD_TENSOR": (Violation.READS_OTHER, "fourth", None, "x"),
    "WRITES_OVER_A_LIVE_INPUT": (Violation.OVERWRITES, "fourth", None, "a"),
    "WRITES_OVER_A_LATER_INPUT": (Violation.OVERWRITES, "second", None, "y"),
    "SCRATCH_READ_FIRST": (Violation.READS_NOTHING, "fourth", None, "s"),
    "SCRATCH_TOO_LONG": (Violation.WRITES_OUTSIDE, "fourth", None, ""),
    "STORE_TOO_WIDE": (Violation.WRITES_OUTSIDE, "fourth", None, ""),
    "OUTPUT_INCOMPLETE": (Violation.READS_NOTHING, "second", "npu0", "a"),
    "INPUT_INCOMPLETE": (Violation.READS_NOTHING, "first", None, "x"),
    "OVERREAD_BY_A_WORD": (Violation.READS_NOTHING, "first", None, "a"),
    "UNALIGNED_OVERREAD": (Violation.READS_NOTHING, "first", None, "a"),
    "LAYERS_SWAPPED": (Violation.READS_OTHER, "fourth", None, "x"),
    "READ_WHILE_RUNNING": (Violation.READS_NOTHING, "second", None, "b"),
    "OUTPUT_WRITTEN_WHILE_RUNNING": (Violation.ACCESSES_BUSY, "second", None, "b"),
    "INPUT_WRITTEN_WHILE_RUNNING": (Violation.ACCESSES_BUSY, "second", None, "a"),
    "NOT_WAITED": (Violation.READS_NOTHING, "fourth", None, "c"),
    "READ_EARLY": (Violation.OUTSIDE_LAYER, "third", "npu0", "a"),
    "DEVICE_WRITES_TOO_MUCH": (Violation.WRITES_OUTSIDE, "second", "npu0", "c"),
    "DEVICE_READS_TOO_MUCH": (Violation.READS_NOTHING, "second", "npu0", "b"),
    "DEVICE_READS_WRONG_TENSOR": (Violation.READS_OTHER, "second", "npu0", "y"),
    "DEVICE_WRITES_OVER_ITS_INPUT": (Violation.OVERWRITES, "second", "npu0", "a"),
    "DEVICE_WRITES_OVER_A_LIVE_TENSOR": (Violation.OVERWRITES, "second", "npu0", "y"),
    "DEVICE_SWAPS_ENDS": (Violation.READS_NOTHING, "second", "npu0", "b"),
    "TWO_DEVICES_IN_ONE_PLACE": (Violation.OVERWRITES, "third", "npu1", "a"),
    "WRONG_DEVICE": (Violation.OUTSIDE_LAYER, "second", "npu1", "a"),
    "STARTED_AFTER_ITS_LAYER": (Violation.OUTSIDE_LAYER, "second", "npu0", "a"),
    "STARTED_BETWEEN_INFERENCES": (Violation.OUTSIDE_LAYER, "", "npu0", "a"),
}
"""By mistake: how the access breaks the rules, the layer, the device that makes it, and the tensor."""
FOUND_IN_THE_CACHE = {
    "INPUT_NOT_CLEANED": (Violation.READS_UNCLEAN, "second", "npu0", "a"),
    "DESCRIPTOR_NOT_CLEANED": (Violation.READS_UNCLEAN, "second", "npu0", ""),
    "OUTPUT_NOT_INVALIDATED": (Violation.READS_STALE, "fourth", None, "c"),
    "LINES_DIRTY_BEFORE_START": (Violation.WRITES_UNDER, "second", "npu0", "b"),
    "INPUT_INVALIDATED_INSTEAD": (Violation.DROPS, "second", None, "a"),
    "CLEANED_TOO_LITTLE": (Violation.READS_UNCLEAN, "second", "npu0", "a"),
    "INVALIDATED_TOO_LITTLE": (Violation.READS_STALE, "fourth", None, "c"),
    "CLEANED_BEFORE_WRITING": (Violation.READS_UNCLEAN, "second", "npu0", "a"),
    "INVALIDATED_TOO_MUCH": (Violation.DROPS, "second", None, "y"),
    "INVALIDATED_BEFORE_CLEANING": (Violation.DROPS, "second", None, "a"),
    "LINE_SHARED": (Violation.SHARES_LINE, "fourth", None, "c"),
    "WHOLE_CACHE_INVALIDATED": (Violation.DROPS, "second", None, "y"),
}
FOUND_BESIDE = {
    "READS_ITS_OUTPUT_EARLY": (Violation.READS_NOTHING, "beside", None, "b"),
    "READS_ITS_OUTPUT_BEFORE_THE_END": (Violation.ACCESSES_BUSY, "beside", None, "b"),
    "WRITES_ITS_INPUT": (Violation.ACCESSES_BUSY, "beside", None, "a"),
    "WRITES_ITS_OUTPUT": (Violation.WRITES_OUTSIDE, "beside", None, "b"),
    "NEVER_COLLECTED": (Violation.ACCESSES_BUSY, "fourth", None, "b"),
    "COLLECTED_UNFINISHED": (Violation.OUTSIDE_LAYER, "second", "npu0", "a"),
    "STARTED_AFTER_ITS_END": (Violation.OUTSIDE_LAYER, "second", "npu0", "a"),
    "WRITES_BESIDE_ITS_OUTPUT": (Violation.WRITES_OUTSIDE, "second", "npu0", ""),
    "READS_WHAT_THE_CORE_WRITES": (Violation.READS_NOTHING, "second", "npu0", "e"),
    "ANOTHER_DEVICE_WRITES": (Violation.OUTSIDE_LAYER, "beside", "npu1", "a"),
}
"""Mistakes while a device goes on beside the core."""
FOUND_BESIDE_IN_THE_CACHE = {
    "RESULT_NOT_INVALIDATED": (Violation.READS_STALE, "fourth", None, "b"),
    "INPUT_NOT_CLEANED_BEFORE": (Violation.READS_UNCLEAN, "second", "npu0", "a"),
}
BEHIND_OTHERS = "OVERREAD_BY_CONSECUTIVE_WORDS"
CONSTANTS = {"CONSTANT_WRITTEN": ("first", None), "DEVICE_WRITES_A_CONSTANT": ("second", "npu0")}


class Copier(RegisterModel):
    """Copies as a descriptor in memory says, after some cycles."""

    table = RegisterTable(
        name="copier",
        registers=(Register("BUSY", BUSY), Register("START", START)),
        size_bytes=0x400,
    )

    def __init__(self) -> None:
        super().__init__()
        self.left = 0
        self.reset()

    @override
    def on_write(self, register: Register, old: int, new: int) -> None:
        if register.offset == START:
            self.set_value("BUSY", 1)
            self.left = 200

    @override
    def advance(self, cycles: int) -> None:
        if 0 < self.left <= cycles:
            source, read_bytes, target, write_bytes = struct.unpack("<4I", self.bus.read(self.value("START"), 16))
            data = self.bus.view(source, read_bytes)
            self.bus.write(target, bytes(data[:write_bytes]).ljust(write_bytes, b"\0"))
            self.set_value("BUSY", 0)
        self.left = max(self.left - cycles, 0)

    @override
    def next_event(self) -> int | None:
        return self.left or None


def plan_of(image: Image) -> OwnershipPlan:
    """Return the plan of firmware/ownership.c."""
    base = image.address_of("workspace")
    buffers = tuple(
        OwnedBuffer(name=name, address=base + offset, size_bytes=size, last=LAST[name], is_input=name == "x")
        for name, (offset, size) in PLACES.items()
    )
    return OwnershipPlan(
        workspace=(Range(name="workspace", address=base, size_bytes=512),),
        buffers=buffers,
        steps=(
            OwnedStep(layer="first", reads=(X,), writes=(A, Y)),
            OwnedStep(layer="second", device="npu0", reads=(A,), writes=(B,)),
            OwnedStep(layer="third", device="npu1", reads=(B,), writes=(C,)),
            OwnedStep(layer="fourth", reads=(C, A, Y), writes=(D, S)),
            OwnedStep(layer="the copies of outputs", reads=(D,)),
        ),
        run=image.address_of("executor_run"),
        next=image.address_of("ferrule_held_next"),
        ran=image.address_of("ferrule_held_ran"),
    )


def plan_beside(image: Image) -> OwnershipPlan:
    """Return the plan of its second executor, in which npu0 goes on beside the third layer."""
    plan = plan_of(image)
    free = OwnedBuffer(name="e", address=image.address_of("workspace") + 448, size_bytes=64, last=3)
    last = {"a": 2, "b": 3, "y": 2, "c": 0, "s": 0}
    return replace(
        plan,
        buffers=(*(replace(each, last=last.get(each.name, each.last)) for each in plan.buffers), free),
        steps=(
            plan.steps[0],
            OwnedStep(layer="second", device="npu0", begun=True, reads=(A,), writes=(B,)),
            OwnedStep(layer="beside", reads=(Y,), writes=(Y + 1,)),
            OwnedStep(layer="fourth", reads=(B, Y + 1), writes=(D,)),
            OwnedStep(layer="the copies of outputs", reads=(D,)),
        ),
        run=image.address_of("executor_beside"),
        finish=image.address_of("ferrule_held_finish"),
    )


def with_devices(machine: Machine, plan: OwnershipPlan | None) -> Machine:
    """Return the machine with its devices and a plan."""
    image = read_image(machine.elf)
    shared = (
        Range(name="workspace", address=image.address_of("workspace"), size_bytes=512),
        Range(name="constants", address=image.address_of("table"), size_bytes=64, writable=False),
    )
    devices = [
        AttachedDevice(
            name=name,
            model=Copier(),
            address=base,
            ranges=(*shared, Range(name="context", address=image.address_of(f"{name}_context"), size_bytes=16)),
        )
        for name, base in (("npu0", 0x4F00_0000), ("npu1", 0x4F00_1000))
    ]
    return replace(machine, devices=tuple(devices), ownership=plan)


def run(
    unicorn: Engine,
    machine: Machine,
    mistake: str,
    *,
    cached: bool = False,
    rounds: int = 3,
    announced: bool = True,
    transfers: int = 6,
) -> list[bytes]:
    """Run some inferences with a mistake, and return the results; `announced`: whether the plan knows the layers."""
    with unicorn.start(machine) as session:
        channel = session.channel()
        channel.write(bytes([NUMBERS[mistake], cached]))
        results = []
        for number in range(rounds):
            channel.write(bytes([number]))
            results.append(channel.read(4, 10))
        counts = session.ownership()
        if machine.ownership is not None:
            assert counts is not None
            assert (counts.inferences, counts.cache) == (rounds if announced else 0, cached)
            assert counts.cacheable == (machine.board.name == CACHED)
            assert bool(counts.accesses) == announced
            assert counts.transfers == (transfers * rounds if announced else 0)
        else:
            assert counts is None
        return results


@pytest.mark.parametrize(("board", "cached"), [(PLAIN, False), (CACHED, False), (CACHED, True)])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("beside", [False, True])
def test_without_a_mistake(unicorn: Engine, build: Build, board: str, cached: bool, exact: bool, beside: bool) -> None:
    """The check finds nothing, also while a device goes on beside the core, and changes no result."""
    machine = build("ownership", board)
    planned, name, transfers = (plan_beside, "NONE_BESIDE", 3) if beside else (plan_of, "NONE", 6)
    plan = replace(planned(read_image(machine.elf)), exact=exact)
    found = run(unicorn, with_devices(machine, plan), name, cached=cached, transfers=transfers)
    assert found == run(unicorn, with_devices(machine, None), name, cached=cached)


def test_accesses_of_unknown_layers_are_not_counted(unicorn: Engine, build: Build) -> None:
    """An inference whose layers are not announced is not counted, and neither are its accesses."""
    run(unicorn, unannounced(build("ownership", PLAIN)), "READS_ANOTHER_LAYERS_TENSOR", announced=False)


@pytest.mark.parametrize("mistake", ["INPUT_AT_WRONG_OFFSET", "OUTPUT_INCOMPLETE"])
def test_unwritten_bytes_are_found_without_known_layers(unicorn: Engine, build: Build, mistake: str) -> None:
    violation, _, device, tensor = FOUND[mistake]
    with pytest.raises(OwnershipError, match="in an inference whose layers are not announced") as caught:
        run(unicorn, unannounced(build("ownership", PLAIN)), mistake, announced=False)
    assert facts(caught.value) == (violation, "", device, tensor)


def unannounced(machine: Machine) -> Machine:
    """Return the machine with devices and a plan by which no layer is announced."""
    image = read_image(machine.elf)
    return with_devices(machine, replace(plan_of(image), next=image.address_of("main")))


def mistaken(
    unicorn: Engine, machine: Machine, plan: OwnershipPlan, mistake: str, *, exact: bool = False
) -> OwnershipError:
    """Run with a mistake until the check finds it, and return the error; a core with a cache has it on."""
    with pytest.raises(OwnershipError) as caught:
        run(unicorn, with_devices(machine, replace(plan, exact=exact)), mistake, cached=machine.board.name == CACHED)
    return caught.value


def facts(error: OwnershipError) -> tuple[Violation, str, str | None, str]:
    return error.violation, error.layer, error.device, error.tensor


@pytest.mark.parametrize("mistake", FOUND)
def test_mistakes(unicorn: Engine, build: Build, mistake: str) -> None:
    """The error names how the rule is broken, the layer, the device and the tensor; with `exact`, the instruction."""
    machine = build("ownership", PLAIN)
    image = read_image(machine.elf)
    for exact in (False, True):
        error = mistaken(unicorn, machine, plan_of(image), mistake, exact=exact)
        assert facts(error) == FOUND[mistake]
        check_text(error, image, exact=exact)


@pytest.mark.parametrize("mistake", FOUND_BESIDE)
def test_mistakes_beside_a_device(unicorn: Engine, build: Build, mistake: str) -> None:
    machine = build("ownership", PLAIN)
    image = read_image(machine.elf)
    error = mistaken(unicorn, machine, plan_beside(image), mistake)
    assert facts(error) == FOUND_BESIDE[mistake]
    check_text(error, image, exact=error.exact)


@pytest.mark.parametrize("mistake", FOUND_BESIDE_IN_THE_CACHE)
def test_mistakes_with_the_cache_beside_a_device(unicorn: Engine, build: Build, mistake: str) -> None:
    machine = build("ownership", CACHED)
    error = mistaken(unicorn, machine, plan_beside(read_image(machine.elf)), mistake, exact=True)
    assert facts(error) == FOUND_BESIDE_IN_THE_CACHE[mistake]


def test_a_plan_that_reuses_memory_too_early_is_found(unicorn: Engine, build: Build) -> None:
    """A plan gives the core memory that a device still uses: the check knows from the steps that it does."""
    machine = build("ownership", PLAIN)
    plan = plan_beside(read_image(machine.elf))
    steps = (*plan.steps[:2], replace(plan.steps[2], writes=(A,)), *plan.steps[3:])
    error = mistaken(unicorn, machine, replace(plan, steps=steps), "WRITES_ITS_INPUT")
    assert (error.violation, error.tensor) == (Violation.ACCESSES_BUSY, "a")


@pytest.mark.parametrize("mistake", FOUND_IN_THE_CACHE)
def test_mistakes_with_the_cache(unicorn: Engine, build: Build, mistake: str) -> None:
    """Mistakes with the data cache are found while it is on, and do not matter while it is off."""
    machine = build("ownership", CACHED)
    image = read_image(machine.elf)
    error = mistaken(unicorn, machine, plan_of(image), mistake, exact=True)
    assert facts(error) == FOUND_IN_THE_CACHE[mistake]
    check_text(error, image, exact=True)
    run(unicorn, with_devices(machine, plan_of(image)), mistake)


def check_text(error: OwnershipError, image: Image, *, exact: bool) -> None:
    """Check what the message names."""
    text = str(error)
    assert f"device {error.device}" in text if error.device else CORE in text
    assert f"in layer '{error.layer}'" in text if error.layer else "outside of all layers" in text
    assert f"tensor '{error.tensor}'" in text if error.tensor else "bytes of no tensor" in text
    assert f"{error.address >> 16:04x}_{error.address & 0xFFFF:04x}" in text
    if error.device is not None:
        assert "asked for by a write of 0x" in text
        assert "to START" in text
    elif exact:
        assert error.exact
        symbol = image.symbol_at(error.pc)
        assert symbol is not None
        assert symbol.name in text
    assert f"at pc 0x{error.pc >> 16:04x}_{error.pc & 0xFFFF:04x}" in text


@pytest.mark.parametrize("mistake", CONSTANTS)
def test_constants(unicorn: Engine, build: Build, mistake: str) -> None:
    """A write to a constant is an error that names it, the layer, and the device or the instruction."""
    machine = build("ownership", PLAIN)
    image = read_image(machine.elf)
    error = mistaken(unicorn, machine, plan_of(image), mistake)
    assert facts(error) == (Violation.WRITES_CONSTANT, *CONSTANTS[mistake], "table")
    assert error.address == image.address_of("table")
    check_text(error, image, exact=True)


def test_every_mistake_is_expected() -> None:
    """The tables above have every mistake of the firmware."""
    assert NUMBERS.keys() == {
        "NONE",
        "NONE_BESIDE",
        *FOUND,
        *FOUND_IN_THE_CACHE,
        *FOUND_BESIDE,
        *FOUND_BESIDE_IN_THE_CACHE,
        *CONSTANTS,
        BEHIND_OTHERS,
    }


def test_bytes_behind_consecutive_words_are_found_at_the_instruction(unicorn: Engine, build: Build) -> None:
    """unicorn's two halves of an unaligned read look like two words, unless each access is intercepted."""
    machine = build("ownership", PLAIN)
    image = read_image(machine.elf)
    run(unicorn, with_devices(machine, plan_of(image)), BEHIND_OTHERS)
    error = mistaken(unicorn, machine, plan_of(image), BEHIND_OTHERS, exact=True)
    assert (error.violation, error.layer, error.device) == (Violation.READS_NOTHING, "fourth", None)
    place, size = PLACES["s"]
    assert error.address == image.address_of("workspace") + place + size
    assert "reads 4 B" in str(error)


@pytest.mark.parametrize("name", ["qemu", "renode", "serial"])
def test_other_engines_refuse(build: Build, name: str) -> None:
    """An engine that cannot watch memory refuses a machine with a plan, and names the one that can."""
    machine = build("ownership", PLAIN)
    with pytest.raises(FerruleError, match=f"engine {name} cannot check ownership") as caught:
        engine(name).start(with_devices(machine, plan_of(read_image(machine.elf))))
    assert "unicorn" in str(caught.value.hint)


@pytest.mark.usefixtures("unicorn", "host_cc")
def test_memories_that_touch_are_watched_apart() -> None:
    """Each region lies in one memory, and has its cache; adjacent ranges of one memory are one region."""
    board = load_board(CACHED)
    whole = board.memory("ssram23")
    border = whole.address + whole.size_bytes // 2
    front = replace(whole, name="front", size_bytes=whole.size_bytes // 2, cacheable=False, line_bytes=0)
    back = replace(whole, name="back", address=border, size_bytes=whole.size_bytes // 2)
    split = replace(board, memories=(front, back))
    shared = Range(name="shared", address=border + PAGE_BYTES, size_bytes=PAGE_BYTES)

    def regions(workspace: Range) -> list[tuple[int, int, bool, int]]:
        middle = OwnedBuffer(name="x", address=border - 4, size_bytes=8, last=0, is_input=True)
        plan = OwnershipPlan(workspace=(workspace,), buffers=(middle,), run=0)
        ownership = Ownership(Guest(split), split, plan, [("npu0", [shared])])
        found = ownership.state.regions[: ownership.state.region_count]
        for each in found:
            for at in {each.address, each.address + each.bytes - 1} & {border - 1, border}:
                mark = ctypes.c_uint16.from_address(each.target + 2 * (at - each.address)).value
                assert (mark == FIRST_BUFFER) == (workspace.address <= at < workspace.address + workspace.size_bytes)
        return [(each.address - border, each.bytes, bool(each.cached), each.line_bytes) for each in found]

    page = Range(name="workspace", address=border, size_bytes=PAGE_BYTES)
    assert regions(page) == [(0, 2 * PAGE_BYTES, True, 32)]
    expected = [(-PAGE_BYTES, PAGE_BYTES, False, 0), (0, 2 * PAGE_BYTES, True, 32)]
    assert regions(replace(page, address=border - PAGE_BYTES, size_bytes=2 * PAGE_BYTES)) == expected
    shared = replace(shared, address=border, size_bytes=2 * PAGE_BYTES)
    assert regions(replace(page, address=border - PAGE_BYTES)) == expected


def test_a_layer_may_replace_inputs_that_its_kernel_reads_first() -> None:
    network = ferrule.Network("network")
    network.add_input(int8_input("x", 4, 6))
    network.set_outputs([network.add_transpose_layer(network.add_tanh_layer("x"), (1, 0))])
    image = SimpleNamespace(path=Path("elf"), has=lambda name: True, find=lambda name: 0, address_of=lambda name: 0)
    steps = ownership_plan(emit(network, Job()), cast(Image, image)).steps
    assert [(each.reads, each.replaces) for each in steps[:2]] == [((0,), (0,)), ((1,), ())]


def test_a_value_that_the_last_inference_has_left_is_read(unicorn: Engine, build: Build) -> None:
    machine = build("ownership", PLAIN)
    plan = plan_of(read_image(machine.elf))
    kept = len(plan.buffers)
    left = replace(plan.buffers[S], becomes=kept, last=4)
    before = replace(plan.buffers[S], name="before", is_kept=True)
    step = replace(plan.steps[3], reads=(*plan.steps[3].reads, kept), replaces=(kept,))
    plan = replace(
        plan,
        buffers=(*plan.buffers[:S], left, *plan.buffers[S + 1 :], before),
        steps=(*plan.steps[:3], step, plan.steps[4]),
    )
    run(unicorn, with_devices(machine, plan), "SCRATCH_READ_FIRST")


def test_a_plan_outside_of_memory(unicorn: Engine, build: Build) -> None:
    """A plan for a place without memory is refused."""
    machine = build("ownership", PLAIN)
    nowhere = Range(name="workspace", address=0x9000_0000, size_bytes=512)
    plan = replace(plan_of(read_image(machine.elf)), workspace=(nowhere,))
    with pytest.raises(EngineError, match="ownership cannot be checked for the memory at 0x90000000"):
        unicorn.start(with_devices(machine, plan))


@pytest.mark.parametrize(("address", "tensor"), [(0xFF, ""), (0x100, "a"), (0x103, "a"), (0x104, "")])
def test_an_access_is_named_by_the_tensor_that_has_its_byte(address: int, tensor: str) -> None:
    buffers = (OwnedBuffer(name="a", address=0x100, size_bytes=4, last=0),)
    plan = OwnershipPlan(workspace=(), buffers=buffers, run=0)
    outside = Violation.WRITES_OUTSIDE
    found = Violated(violation=outside, device=None, write=True, address=address, size_bytes=1, step=0)
    assert ownership_error(plan, found).tensor == tensor
