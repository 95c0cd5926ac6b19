# SPDX-License-Identifier: Apache-2.0
"""The contract of devices that access memory: which command may transfer which bytes, and when.

The host of a device, an engine or the kit for unit tests, begins and ends the commands; the bus asks for each transfer.
docs/emulation.md, "The contract of devices", describes the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from ferrule._frozen import frozen
from ferrule.devices.model import DeviceFaultError

_Spans = list[tuple[int, int]]
"""Ranges of addresses, without the end; sorted and disjoint."""


class Breach(StrEnum):
    """How a device breaks its contract."""

    OUTSIDE = "outside"
    """It accesses bytes that no running command of it has."""
    DIRECTION = "direction"
    """It writes what its command only reads."""
    LATE = "late"
    """It accesses memory of commands while none of its own runs: after the end, or after an abort."""
    ALIGNMENT = "alignment"
    """A transfer, or a tensor that it accesses, has no address that the device could use."""
    UNWRITTEN = "unwritten"
    """Its command is over, and nobody has written some bytes of its outputs."""


class ContractError(DeviceFaultError):
    """A device broke its contract."""

    def __init__(self, message: str, *, device: str, breach: Breach, command: str, tensor: str, address: int) -> None:
        super().__init__(message, device=device, hint="docs/emulation.md, 'The contract of devices', has the rules")
        self.breach = breach
        self.command = command
        """The command at fault, such as "layer 'conv' (step 3)"; empty if the device has had none."""
        self.tensor = tensor
        """The operand at fault; empty if the bytes belong to none."""
        self.address = address


@frozen
class Operand:
    """Memory that a command may access: a tensor, or scratch."""

    name: str
    address: int
    size_bytes: int
    writable: bool = False
    """Whether the device may write it; it may read every operand."""
    is_output: bool = False
    """Whether each byte must have been written when the command is over."""
    is_input: bool = False
    """Whether its value is needed when the command begins."""

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.address + self.size_bytes


class Command:
    """A command of a device, from its begin to its end."""

    def __init__(
        self, label: str, devices: Iterable[str], operands: Sequence[Operand], *, exclusive: bool = False, key: str = ""
    ) -> None:
        """`exclusive` says that only the device writes the outputs, not its driver.

        Commands with the same `key`, by default the label, do the same work one after the other.
        """
        self.label = label
        self.key = key or label
        self.devices = frozenset(devices)
        self.operands = tuple(operands)
        self.exclusive = exclusive
        self.number = 0
        """Its number among the commands of the account, from 1 on; 0 before it begins."""
        self.written: _Spans = []
        """What the device has written so far, in order of time."""
        inputs = merged((each.address, each.end) for each in operands if each.is_input)
        self.outputs = tuple(
            (each, minus([(each.address, each.end)], inputs)) for each in operands if each.is_output and each.size_bytes
        )
        """The outputs, each with the bytes of it that hold no input when the command begins."""
        self._hit = (0, 0)

    def again(self) -> Command:
        """Return another command with the same operands."""
        other = object.__new__(Command)
        other.__dict__.update(self.__dict__)
        other.written = []
        return other

    def reads(self, address: int, end: int) -> bool:
        """Return whether the command may read these bytes: they lie in one operand, not in two side by side."""
        if self._hit[0] <= address and end <= self._hit[1]:
            return True
        for each in self.operands:
            if each.address <= address and end <= each.end:
                self._hit = (each.address, each.end)
                return True
        return False

    def writes(self, address: int, end: int) -> bool:
        """Return whether the command may write these bytes of one operand, and if so, note that they are written."""
        for each in self.operands:
            if each.writable and each.address <= address and end <= each.end:
                begin = address
                if self.written and self.written[-1][1] == address:
                    begin, _ = self.written.pop()
                self.written.append((begin, end))
                return True
        return False

    def misaligned(self, alignment: int, address: int, end: int) -> Operand | None:
        """Return an operand in a range whose address is not aligned; None if there is none."""
        for each in self.operands:
            if each.address % alignment and each.address < end and address < each.end:
                return each
        return None

    def unwritten(self) -> list[tuple[Operand, _Spans]]:
        """Return, by output, the bytes that the device has not written."""
        done = merged(self.written)
        found = ((output, minus(spans, done)) for output, spans in self.outputs)
        return [(output, spans) for output, spans in found if spans]


class Account:
    """The commands of all devices of a machine, and the judge of each transfer."""

    def __init__(self, describe: Callable[[int], str] = hex) -> None:
        """`describe` puts an address in words, such as by a symbol."""
        self.transfers = 0
        """Transfers that were judged."""
        self.commands = 0
        """Commands that have begun."""
        self._describe = describe
        self._running: list[Command] = []
        self._watched: _Spans = []
        self._tensors: tuple[Operand, ...] = ()
        self._alignment: dict[str, tuple[int, int]] = {}
        self._last: dict[str, tuple[str, str]] = {}

    def watch(self, memory: Iterable[tuple[int, int]], tensors: Iterable[Operand] = ()) -> None:
        """Add memory, as pairs of address and size, that devices access for commands only; `tensors` lie there."""
        self._watched = merged([*self._watched, *((address, address + size) for address, size in memory)])
        self._tensors += tuple(tensors)

    def add_device(self, name: str, *, tensor: int = 1, transfer: int = 1) -> None:
        """Add a device that needs an alignment, in bytes: of the tensors that it accesses, or of each transfer."""
        self._alignment[name] = (tensor, transfer)

    def begin(self, command: Command) -> None:
        """Begin a command."""
        self.commands += 1
        command.number = self.commands
        self._running.append(command)
        self._last |= dict.fromkeys(command.devices, (command.label, "is running"))

    def end(self, command: Command, how: str = "is over") -> None:
        """End a command; `how` completes "the command ..."."""
        if command in self._running:
            self._running.remove(command)
            self._last |= dict.fromkeys(command.devices, (command.label, how))

    @property
    def devices(self) -> Sequence[str]:
        """The devices that were added."""
        return tuple(self._alignment)

    @property
    def running(self) -> Sequence[Command]:
        """The commands that have begun and not ended."""
        return self._running

    def where(self, device: str) -> str:
        """Return what a device is doing, in words; empty if it has had no command."""
        mine = [each.label for each in self._running if device in each.devices]
        if mine:
            return f"while it runs {' and '.join(mine)}"
        label, how = self._last.get(device, ("", ""))
        return f"after {label}, which {how}" if label else ""

    def judge(
        self, device: str, address: int, size_bytes: int, *, write: bool, cause: Callable[[], str]
    ) -> ContractError | None:
        """Return the error for a transfer that is not allowed now; None for one that is, which is counted.

        `cause` says in words which register access has caused it.
        """
        end = address + size_bytes
        if size_bytes == 0:
            return None
        self.transfers += 1
        found = self._breach(device, address, end, write=write)
        if found is None:
            return None
        breach, text = found
        where, asked = self.where(device), cause()
        command = next((each.label for each in self._running if device in each.devices), "")
        named = [each.name for each in self._tensors if each.address < end and address < each.end]
        return ContractError(
            f"device {device} {'writes' if write else 'reads'} {size_bytes} B at {self._describe(address)}"
            + (f", asked for by {asked}" if asked else "")
            + f": {text}"
            + (f"; {where}" if where else ""),
            device=device,
            breach=breach,
            command=command or self._last.get(device, ("", ""))[0],
            tensor=named[0] if named else "",
            address=address,
        )

    def unwritten(self, command: Command, output: Operand, address: int, size_bytes: int, total: int) -> ContractError:
        """Return the error for bytes of an output that nobody has written; the first of `total` are at an address."""
        first, last = address - output.address, address - output.address + size_bytes - 1
        place = f"byte {first}" if size_bytes == 1 else f"bytes {first} to {last}"
        more = f" and {total - size_bytes} more" if total > size_bytes else ""
        device = ", ".join(sorted(command.devices))
        whole = f"{_short(output.name)} ({output.size_bytes} B at {self._describe(output.address)})"
        return ContractError(
            f"device {device}: {command.label} is over, and neither the device nor the core has written "
            f"{place}{more} of its output {whole}",
            device=device,
            breach=Breach.UNWRITTEN,
            command=command.label,
            tensor=output.name,
            address=address,
        )

    def _breach(self, device: str, address: int, end: int, *, write: bool) -> tuple[Breach, str] | None:
        """Return the breach of the contract that a transfer is, and its reason in words; None if it is allowed now."""
        tensor, transfer = self._alignment.get(device, _ANY)
        if address % transfer:
            return Breach.ALIGNMENT, f"its transfers need addresses that are multiples of {transfer}"
        mine = [each for each in self._running if device in each.devices]
        for command in mine:
            if command.writes(address, end) if write else command.reads(address, end):
                wrong = command.misaligned(tensor, address, end) if tensor > 1 else None
                if wrong is None:
                    return None
                text = f"{_short(wrong.name)} is at {wrong.address:#x}, and it needs tensors at multiples of {tensor}"
                return Breach.ALIGNMENT, text
        if not any(low < end and address < high for low, high in self._watched):
            return None
        if not mine:
            name = self._tensor(address, end)
            return Breach.LATE, f"{name or 'memory of commands'}, and the device has no command"
        own = [each for command in mine for each in command.operands]
        begun = [each for each in own if each.address <= address < each.end and (each.writable or not write)]
        if begun:
            left = max(begun, key=lambda each: each.end)
            into = next((each for each in own if each.address < end and left.end < each.end), None)
            over = f"{end - left.end} B beyond the end of {_short(left.name)} ({left.size_bytes} B)"
            return Breach.OUTSIDE, over if into is None else f"{over}, into {_short(into.name)}"
        for each in own:
            if write and each.address < end and address < each.end and not each.writable:
                return Breach.DIRECTION, f"{_short(each.name)}, which the command only reads"
        names = ", ".join(_short(each.name) for each in own)
        name = self._tensor(address, end)
        return Breach.OUTSIDE, f"{name or 'bytes of no tensor'}, and the command has {names or 'no operands'}"

    def _tensor(self, address: int, end: int) -> str:
        names = dict.fromkeys(_short(each.name) for each in self._tensors if each.address < end and address < each.end)
        return f"the place of {' or '.join(list(names)[:3])}" if names else ""


_ANY = (1, 1)
_NAME_CHARACTERS = 48


def _short(name: str) -> str:
    """Return a name in quotes, without the end of a long one."""
    return f"'{name}'" if len(name) <= _NAME_CHARACTERS else f"'{name[: _NAME_CHARACTERS - 3]}...'"


def merged(spans: Iterable[tuple[int, int]]) -> _Spans:
    """Return ranges of addresses sorted, with those that touch joined."""
    found: _Spans = []
    for low, high in sorted(spans):
        if low >= high:
            continue
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def minus(spans: _Spans, others: _Spans) -> _Spans:
    """Return the parts of ranges that lie in none of the others, which are merged."""
    found: _Spans = []
    for low, high in spans:
        at = low
        for first, last in others:
            if last <= at:
                continue
            if first >= high:
                break
            if first > at:
                found.append((at, first))
            at = max(at, last)
        if at < high:
            found.append((at, high))
    return found
