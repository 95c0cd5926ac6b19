# SPDX-License-Identifier: Apache-2.0
"""Firmware under test on an emulated or a real board, with consoles, the link, memory and faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ferrule._typing import override
from ferrule.backends import Device
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.boards import Board as Description
from ferrule.boards import load_board
from ferrule.closing import Closing
from ferrule.devices import Fault, FaultInjector, parse_fault
from ferrule.emulation import (
    AttachedDevice,
    AttachedWire,
    Clock,
    Counters,
    CrashReport,
    Engine,
    EngineError,
    EngineOptions,
    Machine,
    Session,
    fitting_engine,
)
from ferrule.emulation import engine as engine_of
from ferrule.emulation.attached import own_devices
from ferrule.emulation.console import TAIL_LINES, Console
from ferrule.errors import FerruleError, unknown_name
from ferrule.firmware import DEFAULT_BOARD, Image, read_image
from ferrule.graph import Array
from ferrule.link import BoardMemory, Channel, LinkSession
from ferrule.network.samples import pattern_sample, split

if TYPE_CHECKING:
    from ferrule.running.compilation import Firmware

LINK_TIMEOUT_S = 60.0
"""Limit of one run of a model, and of the wait for a firmware that is starting."""


class Board(Closing):
    """A board that runs a firmware; it ends with `close` or with its `with` block, and is for use by one thread."""

    def __init__(self, machine: Machine, chosen: Engine, firmware: Firmware | None = None) -> None:
        self._machine = machine
        self._engine = chosen
        self._firmware = firmware
        self._session: Session | None = None
        self._consoles: dict[str, Console] = {}
        self._link: LinkSession | None = None
        self._before: int | None = 0
        self.image: Image = read_image(machine.elf)
        """The firmware's sections and symbols, such as `image.address_of("ticks")`."""
        self._start()

    @property
    def name(self) -> str:
        """The board's name."""
        return self._machine.board.name

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self._engine.name

    @property
    def description(self) -> Description:
        """The board's cores, memories and peripherals."""
        return self._machine.board

    def _start(self) -> None:
        self._session = self._engine.start(self._machine)
        self._consoles, self._link = {}, None

    def _running(self) -> Session:
        if self._session is None:
            raise EngineError("the board has been closed")
        return self._session

    @property
    def console(self) -> Console:
        """The text of the board's console; of a real board, that of its port."""
        return self.uart("console")

    def uart(self, name: str) -> Console:
        """Return the text of a UART: `console`, `link`, or a name from the platform description."""
        session = self._running()
        if name not in self._consoles:
            self._consoles[name] = Console(session, self.description.clock_hz, name)
        return self._consoles[name]

    def channel(self, name: str = "console") -> Channel:
        """Return the bytes of a UART, beside its text."""
        return self._running().channel(name)

    @property
    def link(self) -> LinkSession:
        """The link to a firmware that Ferrule has generated: its models, inputs and outputs."""
        session = self._running()
        if self._link is None:
            if self._firmware is None:
                self._link = LinkSession(
                    session.channel(), run_timeout_s=LINK_TIMEOUT_S, start_timeout_s=LINK_TIMEOUT_S
                )
            else:
                from ferrule.running.session import connect

                self._link = connect(self._firmware, session, self._machine, LINK_TIMEOUT_S)
        return self._link

    def run(self, inputs: Sequence[Array] | Mapping[str, Array] | None = None) -> list[Array]:
        """Run the model of a generated firmware, once for each sample, and return its outputs.

        Inputs are as for `Firmware.run`; for an ELF alone, one sample, in the order of the model's inputs. A model with
        state continues from its last run. Nothing is compared: `network.run` computes what to expect.

        Raises:
            InputError: an input has the wrong name, shape or type.
            RunFailedError: a device or an operator failed.
            EngineError: the firmware faulted.
        """
        link = self.link
        if self._firmware is None:
            if inputs is None or isinstance(inputs, Mapping):
                raise FerruleError("an ELF alone does not name its model's inputs", hint="give a list of arrays")
            return list(link.run(inputs).outputs)
        tensors = self._firmware.network.inputs
        samples = [pattern_sample(tensors)] if inputs is None else split(tensors, inputs)
        results = [link.run(sample).outputs for sample in samples]
        if len(results) == 1:
            return list(results[0])
        return [np.concatenate([np.atleast_1d(each[index]) for each in results]) for index in range(len(results[0]))]

    @property
    def memory(self) -> BoardMemory:
        """The board's memory; FerruleError with an engine that does not reach it while the firmware runs."""
        found = self._running().memory()
        if found is None:
            raise FerruleError(f"engine {self.engine} does not reach the board's memory", hint="unicorn does")
        return found

    def word(self, place: str | int) -> int:
        """Return the 32-bit word of a variable, given by its name, or at an address."""
        address = self.image.address_of(place) if isinstance(place, str) else place
        data = self.memory.read(address, 4)
        if len(data) != 4:
            raise FerruleError(f"the board has no memory for the word at {address:#010x}")
        return int.from_bytes(data, "little")

    def counters(self) -> Counters:
        """Return the engine's counts; `instructions` is None where the engine cannot tell."""
        return self._running().counters()

    @property
    def instructions(self) -> int | None:
        """Instructions that the board has executed since it was started, with those before resets; None if unknown."""
        if self._session is None:
            return self._before
        return total((self._before, self.counters().instructions))

    @property
    def devices(self) -> Mapping[str, AttachedDevice]:
        """The device models on the bus by name."""
        return {device.name: device for device in self._machine.devices}

    @property
    def unchecked(self) -> str:
        """Why the contract of the board's devices is not checked; empty if it is, or if there are none."""
        if not self._machine.devices:
            return ""
        others = "" if self.engine == "unicorn" else f"engine {self.engine} does not check it; unicorn does"
        return self._machine.contract.unchecked or others

    def inject(self, device: str, fault: Fault | str | None) -> None:
        """Give a device's model a fault, such as `never-done@12`, from its next access on; None removes it.

        Raises:
            FerruleError: there is no such device on the bus, or no such fault.
        """
        known = {name: each.model for name, each in self.devices.items()}
        model = known.get(device)
        if model is None:
            raise unknown_name("device", device, known, where="on the bus of this board")
        if not isinstance(model, FaultInjector):
            raise FerruleError(
                f"device {device}: a fault needs a FaultInjector around its model",
                hint="attach it as AttachedDevice(model=FaultInjector(model), ...)",
            )
        model.inject(parse_fault(f"{device}:{fault}")[1] if isinstance(fault, str) else fault)

    def registers(self) -> Mapping[str, int]:
        """Return the core's registers by name; EngineError if the engine does not see them."""
        report = self.crash_report("the registers were read")
        if report is None:
            raise EngineError(f"engine {self.engine} does not see the core's registers")
        return report.registers

    def crash_report(self, reason: str) -> CrashReport | None:
        """Return the firmware's present state; None if the engine does not see it."""
        return self._running().crash_report(reason)

    def reset(self) -> None:
        """Reset the board: memory, devices and consoles are as after its start; a kept engine keeps its process."""
        self._end()
        self._start()

    def state_text(self) -> str:
        """Return what a failed test shows: the last lines of each console, and the registers if they are known."""
        parts = []
        for name, console in self._consoles.items():
            lines = console.text.splitlines()[-TAIL_LINES:]
            parts.append("\n".join([f"{name}:", *(f"  | {line}" for line in lines or ["(nothing)"])]))
        if self._session is not None:
            try:
                report = self.crash_report("the firmware was stopped when the test failed")
                parts += [] if report is None else [str(report)]
            except EngineError as error:
                parts.append(str(error))
        return "\n".join(parts)

    def _end(self) -> None:
        if self._session is None:
            return
        try:
            self._before = total((self._before, self.counters().instructions))
        except EngineError:  # an engine that has ended cannot count
            self._before = None
        finally:
            session, self._session = self._session, None
            session.stop()

    @override
    def close(self) -> None:
        """End the firmware; a second call does nothing."""
        self._end()

    @property
    def is_closed(self) -> bool:
        """Whether the board has been closed."""
        return self._session is None


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    found = 0
    for count in counts:
        if count is None:
            return None
        found += count
    return found


def start(
    firmware: str | Path | Firmware,
    *,
    board: str | Path | Description | None = None,
    engine: str | Engine | None = None,
    devices: Sequence[Device | AttachedDevice] = (),
    wires: Sequence[AttachedWire] = (),
    options: EngineOptions | None = None,
    registry: BackendRegistry | None = None,
    clock: Clock = Clock.INSTRUCTIONS,
) -> Board:
    """Start a firmware on a board: one's own ELF, or a compiled model's, whose devices have their models already.

    `board` defaults to that of the compiled firmware, or to mps2-an386; `engine`, to one that can run the board:
    unicorn, or else qemu or renode. `devices` are models at addresses
    (`AttachedDevice`), or devices of backends, placed by their bindings or where the board has room. `wires` are
    models behind UARTs. With unicorn, the text and the exit of semihosting are carried out, and time can be counted in
    cycles: see `clock` of `ferrule.emulation.Machine`.

    Raises:
        MissingToolError: the engine is not installed.
        EngineError: the engine cannot run this board or this firmware.
        FerruleError: the file is no ELF for an Arm core, it does not fit the board, or a device has no place there.
    """
    compiled = None if isinstance(firmware, (str, Path)) else firmware
    if engine is None:
        engine = fitting_engine((board if compiled is None else compiled.board) or DEFAULT_BOARD)
    chosen = engine_of(engine) if isinstance(engine, str) else engine
    missing = chosen.missing()
    if missing is not None:
        raise missing
    described = [each for each in devices if isinstance(each, Device)]
    wanted = options or EngineOptions(semihosting=chosen.name == "unicorn")
    if isinstance(firmware, (str, Path)):
        machine = _own_machine(Path(firmware), board, described, registry)
    else:
        machine, wanted = _compiled_machine(firmware, board, described), replace(wanted, semihosting=False)
    machine = replace(
        machine,
        devices=(*machine.devices, *(each for each in devices if isinstance(each, AttachedDevice))),
        wires=(*machine.wires, *wires),
        options=wanted,
        clock=clock,
    )
    check_machine(chosen, machine)
    return Board(machine, chosen, compiled)


def _own_machine(
    elf: Path, board: str | Path | Description | None, devices: Sequence[Device], registry: BackendRegistry | None
) -> Machine:
    description = board if isinstance(board, Description) else load_board(board or DEFAULT_BOARD)
    found, wires = own_devices(devices, description, registry or default_registry(), faulty=True)
    return Machine(board=description, elf=elf, devices=tuple(found), wires=tuple(wires))


def _compiled_machine(firmware: Firmware, board: str | Path | Description | None, devices: Sequence[Device]) -> Machine:
    from ferrule.running.session import linked_machine

    name = board.name if isinstance(board, Description) else board
    if name is not None and load_board(name).name != firmware.board.name:
        raise FerruleError(
            f"the firmware was compiled for {firmware.board.name}, not for {name}",
            hint="compile it for the board of the test: ferrule.compile(network, board=ferrule_board.name)",
        )
    if devices:
        raise FerruleError(
            "a compiled firmware has the models of its devices already", hint="add models at addresses: AttachedDevice"
        )
    names = [use.device.name for use in firmware.program.devices]
    return linked_machine(firmware, dict.fromkeys(names, Fault()))


def check_machine(chosen: Engine, machine: Machine) -> None:
    """Raise FerruleError if an engine cannot run a machine, or the machine's firmware lies outside its board."""
    if chosen.name == "serial":
        lacking = chosen.lacks(machine.options)
        if lacking is not None:
            raise lacking
    reason = chosen.refuses(machine.board, [each.name for each in machine.devices])
    if reason is not None:
        raise FerruleError(f"engine {chosen.name} cannot run this on board {machine.board.name}: {reason}")
    for segment in read_image(machine.elf).segments:
        if not any(
            memory.address <= segment.address
            and segment.address + len(segment.data) <= memory.address + memory.size_bytes
            for each in machine.board.memories
            for memory in (each, *(replace(each, address=alias) for alias in each.aliases))
        ):
            raise FerruleError(
                f"{machine.elf} has {len(segment.data):,} B at {segment.address:#010x}, where board "
                f"{machine.board.name} has no memory",
                hint="name the board that it was linked for; `ferrule boards` lists the boards",
            )
