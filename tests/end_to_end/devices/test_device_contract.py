# SPDX-License-Identifier: Apache-2.0
"""Devices that break their contract, in plain runs on unicorn: each is named with its layer; a right one is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from needs import require_module
from small_networks import int8_input

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.firmware import Reach
from ferrule.backends.woofles import arithmetic
from ferrule.backends.woofles.command import Command, Operation
from ferrule.backends.woofles.model import Timing, WooflesModel
from ferrule.codegen import Program
from ferrule.devices import Bus, DeviceFaultError, InterruptLine, Register
from ferrule.devices.contract import Breach, ContractError
from ferrule.emulation import EngineError, contract_plan
from ferrule.emulation.attached import attached_devices
from ferrule.errors import FerruleError
from ferrule.link import RunFailedError
from ferrule.report import Verdict
from ferrule.report.document import DeviceWorkPart, LayerPart
from ferrule.report.estimates import EstimatePart
from ferrule.report.tracing import slow_notes
from ferrule.testing import Board, start

pytestmark = [pytest.mark.cc, pytest.mark.emu]

SCALE = ferrule.Quantization.of(1.0)
SIZE = 16
X = np.arange(-8, 8, dtype=np.int8).reshape(1, SIZE)
Finish = Callable[[WooflesModel, Command], None]


@pytest.fixture(scope="module")
def firmware() -> ferrule.Firmware:
    """The core's layer between two of a device."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    network = ferrule.Network("pair")
    network.add_input(int8_input("x", 1, SIZE))
    first = network.add_add_layer("x", "x", quantization=SCALE, name="first")
    core = network.add_tanh_layer(first, name="core")
    network.set_outputs([network.add_mul_layer(core, first, quantization=SCALE, name="last")])
    devices = [Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": 1})]
    return ferrule.compile(network, backends=["Woofles", "CpuAcc"], devices=devices)


@pytest.fixture
def finish(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Finish], None]]:
    """Replaces how the device ends a command: with its result."""
    right = arithmetic.execute

    def replaced(work: Finish) -> None:
        def execute(command: Command, bus: object) -> None:
            del bus
            work(MODELS[-1], command)

        monkeypatch.setattr(arithmetic, "execute", execute)

    created = WooflesModel.__init__

    def init(self: WooflesModel, *arguments: object) -> None:
        created(self, *arguments)  # type: ignore[arg-type]
        MODELS.append(self)

    monkeypatch.setattr(WooflesModel, "__init__", init)
    RIGHT.append(right)
    yield replaced
    RIGHT.clear()
    MODELS.clear()


MODELS: list[WooflesModel] = []
RIGHT: list[Callable[..., None]] = []


def right(model: WooflesModel, command: Command) -> None:
    RIGHT[0](command, model.bus)


def in_pieces(model: WooflesModel, command: Command) -> None:
    """Write the last byte of the output by itself, which is right."""
    right(model, command)
    whole = model.bus.read(command.output, SIZE)
    model.bus.write(command.output + SIZE - 1, whole[-1:])


def one_byte_more(model: WooflesModel, command: Command) -> None:
    right(model, command)
    model.bus.write(command.output, model.bus.read(command.output, SIZE) + b"\0")


def before_the_output(model: WooflesModel, command: Command) -> None:
    right(model, command)
    model.bus.write(command.output - 1, b"\0")


def over_the_input(model: WooflesModel, command: Command) -> None:
    right(model, command)
    model.bus.write(command.input, b"\0")


def nothing(model: WooflesModel, command: Command) -> None:
    """Say that the command is over."""


def all_but_one(model: WooflesModel, command: Command) -> None:
    view = model.bus.read(command.input, SIZE)
    model.bus.write(command.output, view[: SIZE - 1])


def reads_beyond(model: WooflesModel, command: Command) -> None:
    right(model, command)
    model.bus.read(command.second, 2 * SIZE + 1)  # x and the output lie side by side


def reads_into_the_output(model: WooflesModel, command: Command) -> None:
    right(model, command)
    model.bus.read(command.second, SIZE + 1)


BREACHES: dict[str, tuple[Finish, Breach, str]] = {
    "one byte more": (one_byte_more, Breach.OUTSIDE, "writes 17 B .*: 1 B beyond the end of 'first' \\(16 B\\)"),
    "one byte before": (before_the_output, Breach.DIRECTION, "writes 1 B at .*: 'x', which the command only reads"),
    "the input": (over_the_input, Breach.DIRECTION, "writes 1 B at .*: 'x', which the command only reads"),
    "nothing": (nothing, Breach.UNWRITTEN, "has written bytes 0 to 15 of its output 'first'"),
    "all but one": (all_but_one, Breach.UNWRITTEN, "has written byte 15 of its output 'first'"),
    "reads beyond": (reads_beyond, Breach.OUTSIDE, "reads 33 B at .*: 17 B beyond the end of 'x'"),
    "reads into its neighbour": (
        *(reads_into_the_output, Breach.OUTSIDE),
        "reads 17 B at .*: 1 B beyond the end of 'x' \\(16 B\\), into 'first'",
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_breach_names_device_and_layer(
    firmware: ferrule.Firmware, finish: Callable[[Finish], None], breach: str
) -> None:
    work, kind, text = BREACHES[breach]
    finish(work)
    with pytest.raises(EngineError, match=text) as caught:
        firmware.run([X])
    error = caught.value.__cause__
    assert isinstance(error, ContractError)
    assert (error.breach, error.device, error.command) == (kind, "npu0", "layer 'first' (step 0)")
    report = caught.value.report
    assert report is not None
    assert any(note.startswith("registers of device npu0: ID 0x") for note in report.notes)
    if kind is not Breach.UNWRITTEN:
        assert "asked for by a write of 0x1 to QUEUE_HEAD by 0x" in str(error)
        assert "(woofles_submit+" in str(error)


@pytest.mark.parametrize("work", [right, in_pieces])
def test_a_right_device(firmware: ferrule.Firmware, finish: Callable[[Finish], None], work: Finish) -> None:
    finish(work)
    report = firmware.run([X])
    assert report.verdict is Verdict.EXACT
    contract = report.document.contract
    assert contract is not None
    assert contract.unchecked == ""
    assert contract.commands == 2 * 3  # one inference at the start, one with counts, and the sample
    assert contract.transfers
    assert all(device.notes == () and device.registers == {} for device in report.document.devices)


def test_the_output_of_the_network_is_checked_too(firmware: ferrule.Firmware, finish: Callable[[Finish], None]) -> None:
    def work(model: WooflesModel, command: Command) -> None:
        if command.operation == Operation.ADD:
            right(model, command)

    finish(work)
    with pytest.raises(EngineError, match="of its output 'last'") as caught:
        firmware.run([X])
    error = caught.value.__cause__
    assert isinstance(error, ContractError)
    assert (error.command, error.tensor) == ("layer 'last' (step 2)", "last")


def test_a_view_for_writing_counts_as_written(firmware: ferrule.Firmware, finish: Callable[[Finish], None]) -> None:
    def view(model: WooflesModel, command: Command) -> None:
        model.bus.view(command.output, SIZE, writable=True)

    finish(view)
    assert firmware.run([X]).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize(("place", "text"), [
    ("ring", r"DMA outside of its buffers: write of 4 B at .* \(npu0_context\+0x"),
    ("constant", "DMA outside of its buffers: write of 4 B at "),
])  # fmt: skip
def test_the_driver_and_the_program_are_not_the_devices(
    firmware: ferrule.Firmware, finish: Callable[[Finish], None], place: str, text: str
) -> None:
    def work(model: WooflesModel, command: Command) -> None:
        del command
        model.bus.write(model.value("QUEUE_BASE") if place == "ring" else 0x100, bytes(4))

    finish(work)
    with pytest.raises(EngineError, match=text) as caught:
        firmware.run([X])
    assert isinstance(caught.value.__cause__, DeviceFaultError)
    assert "while it runs layer 'first' (step 0)" in str(caught.value)


def late_writes(monkeypatch: pytest.MonkeyPatch, after: int, *, announced: bool) -> dict[int, bytes]:
    """Let the device write what the dictionary has, some cycles after it has ended or was reset."""
    pending: dict[int, bytes] = {}
    left = [0]
    advance, next_event = WooflesModel.advance, WooflesModel.next_event

    def later(self: WooflesModel, cycles: int) -> None:
        advance(self, cycles)
        left[0] = left[0] + cycles if pending else 0
        if pending and left[0] >= after:
            address, data = pending.popitem()
            self.bus.write(address, data)

    def event(self: WooflesModel) -> int | None:
        mine = next_event(self)
        return min(mine or after, after) if pending and announced else mine

    monkeypatch.setattr(WooflesModel, "advance", later)
    monkeypatch.setattr(WooflesModel, "next_event", event)
    return pending


@pytest.mark.parametrize("announced", [True, False])
def test_a_write_after_the_end(
    firmware: ferrule.Firmware, finish: Callable[[Finish], None], monkeypatch: pytest.MonkeyPatch, announced: bool
) -> None:
    pending = late_writes(monkeypatch, 600, announced=announced)

    def work(model: WooflesModel, command: Command) -> None:
        right(model, command)
        pending.setdefault(command.output, model.bus.read(command.output, SIZE))

    finish(work)
    with pytest.raises(EngineError, match=r"writes 16 B at .*: (the place of )?'first'") as caught:
        firmware.run([X])
    error = caught.value.__cause__
    assert isinstance(error, ContractError)
    assert error.breach in {Breach.LATE, Breach.DIRECTION}  # while it runs no command, or the next one
    assert error.device == "npu0"


def test_a_device_that_acknowledges_its_abort_and_still_writes(
    firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = late_writes(monkeypatch, 5000, announced=True)
    commands: list[Command] = []
    reset = WooflesModel.reset

    def forget(self: WooflesModel) -> None:
        if commands:
            pending[commands.pop().output] = bytes(SIZE)
        reset(self)

    def hang(self: WooflesModel, command: Command) -> None:
        del self
        commands[:] = [command]  # it is over for the model, and never for the driver

    def run(board: Board) -> None:
        for _ in range(3):
            with contextlib.suppress(RunFailedError):
                board.run([X])

    with start(firmware) as board:
        monkeypatch.setattr(WooflesModel, "reset", forget)
        monkeypatch.setattr(WooflesModel, "_finish", hang)
        with pytest.raises(EngineError, match="writes 16 B") as caught:
            run(board)
        error = caught.value.__cause__
        assert isinstance(error, ContractError)
        assert (error.breach, error.device, error.command) == (Breach.LATE, "npu0", "layer 'first' (step 0)")
        assert "which was aborted, since the run has failed with -" in str(error)


def test_a_firmware_without_symbols_says_that_it_is_not_checked(firmware: ferrule.Firmware) -> None:
    whole = firmware.image
    for missing in ("ferrule_held_next", "ferrule_pair_run"):
        image = replace(whole, symbols=tuple(each for each in whole.symbols if each.name != missing))
        plan = contract_plan(firmware.program, image)
        assert plan.unchecked == f"{whole.path.name} has no symbol {missing}"
        assert plan.models == ()
    assert contract_plan(firmware.program, whole).unchecked == ""


def _with_reach(firmware: ferrule.Firmware, *parts: Reach) -> Program:
    """Return the program with a driver that states what the device accesses."""
    artifact = firmware.artifact
    uses = tuple(replace(use, driver=replace(use.driver, reach=parts)) for use in artifact.devices)
    return Program(artifacts=(replace(artifact, devices=uses),))


def test_the_parts_of_a_context_that_a_device_accesses(firmware: ferrule.Firmware) -> None:
    (symbol,) = (each for each in firmware.image.symbols if each.name == "npu0_context")
    context, size = symbol.address, symbol.size_bytes
    ring = Reach(name="ring", offset_bytes=32, size_bytes=64, writable=True)
    head = Reach(name="head", size_bytes=4)
    for parts, expected in (
        ((ring, head), [(context + 32, 64, True), (context, 4, False)]),
        ((), []),
        ((Reach(name="nothing", size_bytes=4, storage="other"),), []),
        ((Reach(name="the rest", offset_bytes=8),), [(context + 8, size - 8, False)]),
    ):
        program = _with_reach(firmware, *parts)
        (device,) = attached_devices(program.artifacts[0], firmware.image, program=program)
        own = [each for each in device.ranges if each.name.startswith("npu0_")]
        assert [(each.address, each.size_bytes, each.writable) for each in own] == expected
    program = _with_reach(firmware, replace(ring, size_bytes=1 << 16))
    with pytest.raises(FerruleError, match="its driver states 65536 B of ring at offset 32 of npu0_context, which has"):
        attached_devices(program.artifacts[0], firmware.image, program=program)


# ---- what a run says of a device although it has not failed

SLOW_TIMING = Timing(command=20_000, macs_per_cycle=1, bytes_per_cycle=1)


class _Silent:
    """A line that nobody is connected to."""

    def set(self, level: bool) -> None:
        del level


def test_a_lost_interrupt_is_noted(firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch) -> None:
    """The device is done, and its interrupt does not come: the waits end by their limits, and the results are right."""
    attach, created = WooflesModel.attach, WooflesModel.__init__
    # not over before the driver waits
    monkeypatch.setattr(WooflesModel, "__init__", lambda self: created(self, SLOW_TIMING))

    def cut(self: WooflesModel, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        attach(self, bus=bus, irq=None if irq is None else _Silent())

    monkeypatch.setattr(WooflesModel, "attach", cut)
    report = firmware.run([X])
    assert report.verdict is Verdict.EXACT
    (device,) = report.document.devices
    assert device.registers["ID"] == 0x4C46_4F57
    assert any("waits ended by the limit although the work was done" in note for note in device.notes)


def test_an_interrupt_that_was_masked_is_noted(firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cause cannot be cleared, so the handler returns false, and the platform masks the line."""
    on_write = WooflesModel.on_write

    def keep(self: WooflesModel, register: Register, old: int, new: int) -> None:
        if register.name == "INTERRUPT":
            self.set_value("INTERRUPT", old)
        on_write(self, register, old, new)

    monkeypatch.setattr(WooflesModel, "on_write", keep)
    report = firmware.run([X])
    assert report.verdict is Verdict.EXACT
    (device,) = report.document.devices
    number = firmware.artifact.devices[0].driver.interrupt
    masked = f"interrupt {number} was masked and not enabled again; the device has raised it once"
    assert device.notes == (masked,)
    assert device in report.document.noted()


@pytest.mark.parametrize("timing", [None, SLOW_TIMING])
def test_a_device_that_is_slower_than_its_backend_says_is_noted(
    timing: Timing | None, firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = WooflesModel.__init__
    if timing is not None:
        monkeypatch.setattr(WooflesModel, "__init__", lambda self: created(self, timing))
    (device,) = firmware.run([X]).document.devices
    assert any(note.endswith("cycles of its backend's estimate") for note in device.notes) == (timing is not None)


def test_a_layer_that_takes_many_times_its_estimate_is_noted() -> None:
    def layer(busy: int, *, is_compiled: bool = True) -> LayerPart:
        compiled = EstimatePart(source="c", cycles=100, clock_hz=1, layers={}, memories=(), warnings=())
        return LayerPart(
            index=0, name="l", type="pre_compiled", backend="B", kernel="k", macs=0, count=1, share=1.0,
            constant_bytes=0, scratch_bytes=0, work=DeviceWorkPart(read_bytes=0, written_bytes=0, busy=busy),
            estimate=compiled if is_compiled else None,
        )  # fmt: skip

    assert list(slow_notes([layer(399)], {"l": 1})) == []
    text = "layer 'l' kept it at work for 400 instructions, 4.0 times the 100 cycles of its compiler's estimate"
    assert list(slow_notes([layer(400)], {})) == [text]
    own = [layer(400, is_compiled=False)]
    assert list(slow_notes(own, {"l": 100})) == [text.replace("compiler's", "backend's")]
    assert list(slow_notes(own, {"l": 101})) == list(slow_notes(own, {"l": 0})) == list(slow_notes(own, {})) == []
