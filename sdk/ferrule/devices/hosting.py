# SPDX-License-Identifier: Apache-2.0
"""Calls device models, which are user code: the only way by which an attachment does so.

A model's answers are checked, its DMA is guarded, and whatever breaks the contract of `DeviceModel` or `SerialModel`
becomes a DeviceFaultError that names the device. The watchdog ends calls that do not return.
"""

from __future__ import annotations

import math
import operator
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.devices.memory import Escape, GuardedBus, Judge, Range
from ferrule.devices.model import Bus, BusError, DeviceFaultError, DeviceModel, InterruptLine, PassingBus
from ferrule.devices.serial import SerialModel
from ferrule.devices.watchdog import WATCHDOG
from ferrule.errors import FerruleError, caused_by_signal

MOST_EVENTS = 1_000_000
"""Largest number of events that one access may cause where time passes only with accesses."""
MANY_RISES = 10_000
"""Number of rises of an interrupt line from which on a report mentions it."""
_EVENT_BITS = 63
_M = TypeVar("_M", DeviceModel, SerialModel)
_T = TypeVar("_T")


class _Hosted:
    """The common part of hosted models: faults and deadlines."""

    def __init__(self, model: DeviceModel | SerialModel, name: str, limit_s: float | None) -> None:
        self.name = name
        self.fault: DeviceFaultError | None = None
        """The first fault of the model; None if there is none. From then on every call raises it."""
        self.stuck = False
        """Whether a call has passed its deadline and has not returned yet."""
        self.deadline_s = model.deadline_s if limit_s is None else min(model.deadline_s, limit_s)
        self.abandon: Callable[[], None] = lambda: None
        """Called by the watchdog's thread if a call goes on although it was interrupted; for attachments to replace."""
        self._late = False
        self._host_error: BaseException | None = None
        WATCHDOG.watch(self)

    def overdue(self, frame: FrameType, elapsed_s: float, *, again: bool) -> None:
        """Keep the fault of a call that is being interrupted; called by the watchdog."""
        if again:
            self.abandon()
            return
        call, given = frame.f_code.co_name, frame.f_locals
        what = f"its model did not return within {elapsed_s:.1f} s"
        hint = "the limit is the run's time-out or the model's deadline_s, whichever is shorter"
        self._wrong(what, _call_text(call, given.get("cycles")), given.get("offset"), hint=hint)
        self.stuck = self._late = True

    def failed(self, error: BaseException, call: str, offset: int | None = None) -> NoReturn:
        """Raise the fault for an exception of the model; those of the host and of signals are raised as they are."""
        if self._late and self.fault is not None:
            WATCHDOG.settle()
            self.deadline_s, self.stuck = float("inf"), False
            raise self.fault from error
        if error is self._host_error or error is self.fault or not _is_fault(error):
            raise error
        what = f"its model raised {_error_text(error)}"
        raise self._wrong(what, call, offset, hint=_place(error)) from error

    def _asked(self, call: str, ask: Callable[[], _T]) -> _T:
        """Return what a function of the model returns; raise as `failed` does."""
        try:
            return ask()
        except BaseException as error:  # noqa: BLE001 user code
            self.failed(error, call)

    def wrong_answer(self, answer: object, expected: str, call: str, offset: int | None = None) -> NoReturn:
        """Raise the fault for a value that the contract does not allow."""
        raise self._wrong(f"its model returned {_shown(answer)}, expected {expected},", call, offset)

    def host_failed(self, error: FerruleError) -> None:
        """Note an error of the host that passes through the model."""
        self._host_error = error

    def _wrong(self, what: str, call: str, offset: int | None, *, hint: str | None = None) -> DeviceFaultError:
        """Keep and return the fault of a call; a model that has failed already keeps its first one."""
        register = None if offset is None else self._register(offset)
        place = "" if offset is None else f" of {register or 'the register'} (offset {offset:#x})"
        text = f"device {self.name}: {what} in {call}{place}"
        return self._keep(DeviceFaultError(text, device=self.name, register=register, offset=offset, hint=hint))

    def _keep(self, fault: DeviceFaultError) -> DeviceFaultError:
        if self.fault is None:
            self.fault = fault
        return self.fault

    def _register(self, offset: int) -> str | None:
        del offset
        return None


@frozen
class Host:
    """What a model's host knows beside the model."""

    judge: Judge | None = None
    """Decides on each transfer."""
    where: Callable[[], str] = str
    """Describes what the device is doing, for messages."""
    describe: Callable[[int], str] | None = None
    """Describes an address, for messages."""
    place: Callable[[], int] | None = None
    """Returns the address of the instruction that makes the present access."""


class HostedModel(_Hosted):
    """A device model as attachments call it; see `DeviceModel` for the methods.

    `ranges` is the memory that the model may access by DMA, empty for all. `line` is the number of its interrupt, for
    messages. `limit_s` is an upper limit of the model's own deadline.

    Raises:
        DeviceFaultError: each method raises it if the model breaks its contract.
    """

    def __init__(
        self,
        model: DeviceModel,
        *,
        name: str,
        ranges: Sequence[Range] = (),
        line: int | None = None,
        limit_s: float | None = None,
        host: Host | None = None,
    ) -> None:
        super().__init__(model, name, limit_s)
        self._model = model
        self._ranges = tuple(ranges)
        self._host = host or Host()
        self._written: tuple[int, int, int | None] | None = None
        self._number = line
        self._guard: GuardedBus | None = None
        self._line: _HostedLine | None = None
        self.refusal: BusError | None = None
        """The error with which the model refused the last access; None if it did not."""
        self.first_refusal: BusError | None = None
        """The first refusal; None if there is none."""

    def attach(self, *, bus: Bus | None = None, irq: InterruptLine | None = None) -> None:
        """Connect the model to a bus and an interrupt line."""
        if bus is not None:
            if self._ranges or self._host.judge is not None:
                bus = self._guard = GuardedBus(bus, self._ranges or None, self._host.judge)
                self._guard.cause = self._cause
            bus = _HostedBus(bus, self)
        if irq is not None:
            irq = self._line = _HostedLine(irq, self)
        self._asked("attach", lambda: self._model.attach(bus=bus, irq=irq))

    @property
    def size_bytes(self) -> int:
        """Size of the register window."""
        size = self._asked("size_bytes", lambda: self._model.size_bytes)
        if type(size) is not int or size < 1:
            self.wrong_answer(size, "a positive number of bytes", "size_bytes")
        return size

    @property
    def transferred(self) -> tuple[int, int]:
        """The bytes that the model has read and written by DMA; zero if it is not restricted to ranges."""
        return (0, 0) if self._guard is None else (self._guard.read_bytes, self._guard.written_bytes)

    def statistics(self) -> dict[str, int | float]:
        """Return the model's counts by name."""
        found = self._asked("statistics", lambda: dict(self._model.statistics()))
        for name, number in found.items():
            if type(name) is not str or type(number) not in {int, float} or not math.isfinite(number):
                self.wrong_answer({name: number}, "finite numbers by name", "statistics")
        return found

    def complaint(self) -> str:
        """Return why the model refused its last work."""
        found = self._asked("failure", self._model.failure)
        if type(found) is not str:
            self.wrong_answer(found, "a text", "failure")
        return found

    def registers(self) -> dict[str, int]:
        """Return the values of the model's registers by name; empty if it has none, or has failed to state them."""
        try:
            return {str(name): operator.index(value) for name, value in self._model.registers().items()}
        except Exception:  # noqa: BLE001 a report without the registers is better than another error
            return {}

    @property
    def cause(self) -> str:
        """The last register access that the memory of its transfers is known for, in words; empty if there is none."""
        return "" if self._guard is None else self._guard.cause_text

    def _cause(self) -> str:
        if self._written is None:
            return "no register"
        value, offset, place = self._written
        describe = self._host.describe
        at = "" if place is None or describe is None else f" by {describe(place)}"
        return f"a write of {value:#x} to {self.register_name(offset)}{at}"

    @property
    def escape(self) -> Escape | None:
        """The first transfer outside of the memory that the model may access; None if there is none."""
        return self._guard.escapes[0] if self._guard is not None and self._guard.escapes else None

    def register_name(self, offset: int) -> str:
        """Return the name of the register at an offset, for messages."""
        return self._register(offset) or f"offset {offset:#x}"

    def reset(self) -> None:
        """Reset the model."""
        self._asked("reset", self._model.reset)
        self._check()

    def read(self, offset: int, width: int) -> int:
        """Read a register; BusError if the model refuses."""
        self.refusal = None
        if self.fault is not None:
            raise self.fault
        try:
            value = self._model.read(offset, width)
        except BaseException as error:  # noqa: BLE001
            self._refused(error, "a read", offset)
        if type(value) is not int or value >> (width << 3):
            expected = f"a number of 0 to {(1 << 8 * width) - 1:#x}"
            value = self._number_of(value, 0, width << 3, expected, "a read", offset)
        self._check()
        return value

    def write(self, offset: int, width: int, value: int) -> None:
        """Write a register; BusError if the model refuses."""
        self.refusal = None
        if self.fault is not None:
            raise self.fault
        if self._guard is not None:
            self._written = value, offset, None if self._host.place is None else self._host.place()
        try:
            self._model.write(offset, width, value)
        except BaseException as error:  # noqa: BLE001
            self._refused(error, "a write", offset)
        self._check()

    def _refused(self, error: BaseException, call: str, offset: int) -> NoReturn:
        """Note a BusError of a register access and raise it; raise as `failed` does for another exception."""
        if not isinstance(error, BusError):
            self.failed(error, call, offset)
        self._check()
        self.refusal = error
        self.first_refusal = self.first_refusal or error
        raise error

    def advance(self, cycles: int) -> None:
        """Let time pass for the model."""
        if self.fault is not None:
            raise self.fault
        try:
            self._model.advance(cycles)
        except BaseException as error:  # noqa: BLE001
            self._check()
            self.failed(error, _call_text("advance", cycles))
        self._check()

    def next_event(self) -> int | None:
        """Return the number of cycles, 1 or more, until the model's next internal event, or None."""
        event = self._asked("next_event", self._model.next_event)
        if event is not None and (type(event) is not int or event < 1 or event >> _EVENT_BITS):
            event = self._number_of(event, 1, _EVENT_BITS, "None or a number of cycles from 1 on", "next_event")
        return event

    def settle(self) -> None:
        """Let time pass until the model has no further event, for attachments where models need no time."""
        for _ in range(MOST_EVENTS):
            event = self.next_event()
            if event is None:
                return
            self.advance(event)
        what = f"its events do not end, {MOST_EVENTS:,} of them"
        hint = "attach the model with time: the engines unicorn, renode and renode:cosimulation-ticks"
        raise self._wrong(what, "the time after an access", None, hint=hint)

    @property
    def rises(self) -> int:
        """How often the model has raised its interrupt line."""
        return 0 if self._line is None else self._line.rises

    @property
    def notes(self) -> list[str]:
        """Facts about the interrupt line for the report of a run that did not end, one sentence each."""
        line = self._line
        if line is None:
            return []
        number = "" if self._number is None else f" {self._number}"
        notes = [f"interrupt line{number} of device {self.name} is high"] if line.level else []
        if line.rises >= MANY_RISES:
            notes.append(f"interrupt storm: device {self.name} raised its line{number} {line.rises:,} times")
        return notes

    def _number_of(
        self, answer: object, least: int, bits: int, expected: str, call: str, offset: int | None = None
    ) -> int:
        """Return an answer of any integer type as an int; raise the fault for one that is not in the range."""
        try:
            found = operator.index(answer)  # type: ignore[arg-type]
        except Exception:  # noqa: BLE001 __index__ is user code
            self.wrong_answer(answer, expected, call, offset)
        if found < least or found >> bits:
            self.wrong_answer(answer, expected, call, offset)
        return found

    def _check(self) -> None:
        guard = self._guard
        if guard is None or not (guard.breach or guard.escapes):  # at each access of a register
            return
        if guard.breach is not None:
            raise self._keep(guard.breach)
        first = self.escape
        if first is not None:
            where, describe = self._host.where(), self._host.describe
            there = "" if describe is None else f", at {describe(first.address)}"
            fault = DeviceFaultError(
                f"device {self.name}: DMA outside of its buffers: {first}{there}{f'; {where}' if where else ''}",
                device=self.name,
                hint="it may reach the model's workspace and weights, and what its driver states of its context",
            )
            raise self._keep(fault)

    @override
    def _register(self, offset: int) -> str | None:
        try:
            name = str(self._model.register_name(offset))
        except Exception:  # noqa: BLE001 a message without the name is better than another error
            return None
        return None if name.startswith("offset ") else name


class HostedSerialModel(_Hosted):
    """A serial model as attachments call it."""

    def __init__(self, model: SerialModel, *, name: str, limit_s: float | None = None) -> None:
        super().__init__(model, name, limit_s)
        self._model = model

    def receive(self, data: bytes) -> bytes:
        """Deliver bytes to the model and return its answer; DeviceFaultError if it breaks its contract."""
        if self.fault is not None:
            raise self.fault
        answer = self._asked(f"receive of {len(data)} B", lambda: self._model.receive(data))
        if not isinstance(answer, bytes | bytearray):
            self.wrong_answer(answer, "bytes", "receive")
        return bytes(answer)


def hosted(model: DeviceModel | HostedModel) -> HostedModel:
    """Return a hosted model as it is, and host any other under the name of its class."""
    return model if isinstance(model, HostedModel) else HostedModel(model, name=type(model).__name__)


def created(make: Callable[[], object], kind: type[_M], *, name: str) -> _M:
    """Return a new model of a kind, made by a backend's function; DeviceFaultError if that fails."""
    try:
        model = make()
    except BaseException as error:
        if not _is_fault(error):
            raise
        text = f"device {name}: its model cannot be created: {_error_text(error)}"
        raise DeviceFaultError(text, device=name, hint=_place(error)) from error
    if not isinstance(model, kind):
        text = f"device {name}: its model is {_shown(model)}, expected a {kind.__name__}"
        raise DeviceFaultError(text, device=name)
    return model


def unattached(model: DeviceModel, name: str) -> HostedModel:
    """Return a model that is asked about itself, and attached to nothing."""
    return HostedModel(model, name=name)


@dataclass
class _HostedBus(PassingBus):
    """The bus as a model sees it: its arguments are checked, and errors of the host are noted."""

    _host: _Hosted

    @override
    def pass_on(self, transfer: Callable[[int, int], _T], address: int, size_bytes: int, *, write: bool) -> _T:
        try:
            return transfer(*_span(address, size_bytes))
        except FerruleError as error:
            if not isinstance(error, BusError):
                self._host.host_failed(error)
            raise


@dataclass
class _HostedLine:
    """The interrupt line as a model sees it; changes of its level reach the host, and rises are counted."""

    _line: InterruptLine
    _host: _Hosted
    level: bool | None = None
    rises: int = 0

    def set(self, level: bool) -> None:
        """Raise or lower the line."""
        level = bool(level)
        if level is self.level:
            return
        self.level = level
        self.rises += level
        try:
            self._line.set(level)
        except FerruleError as error:
            self._host.host_failed(error)
            raise


WATCHDOG.entries |= {
    method.__code__
    for method in (
        HostedModel.attach,
        HostedModel.reset,
        HostedModel.read,
        HostedModel.write,
        HostedModel.advance,
        HostedModel.next_event,
        HostedModel.settle,
        HostedModel.statistics,
        HostedSerialModel.receive,
    )
}


def _is_fault(error: BaseException) -> bool:
    """Return whether the model is to blame; other exceptions end the program on purpose, as on SIGTERM or Ctrl-C."""
    return isinstance(error, (Exception, SystemExit, KeyboardInterrupt)) and not caused_by_signal(error)


def _span(address: int, size_bytes: int) -> tuple[int, int]:
    """Return a range of addresses as ints; TypeError or ValueError if it is none, which is a fault of the model."""
    start, size = operator.index(address), operator.index(size_bytes)
    if start < 0 or size < 0:
        raise ValueError(f"DMA of {size} B at {start:#x}")
    return start, size


def _call_text(call: str, cycles: object) -> str:
    names = {"read": "a read", "write": "a write", "settle": "the time after an access"}
    return f"advance by {cycles} cycles" if call == "advance" else names.get(call, call)


def _shown(value: object) -> str:
    try:
        text = hex(value) if type(value) is int and value > 0xFFFF else repr(value)
    except Exception:  # noqa: BLE001 __repr__ is user code
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _error_text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 __str__ is user code
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: BaseException) -> str | None:
    """Return the innermost place of an exception's traceback outside of this module."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename != __file__]
    return f"raised at {Path(frames[-1].filename).name}:{frames[-1].lineno}, in {frames[-1].name}" if frames else None
