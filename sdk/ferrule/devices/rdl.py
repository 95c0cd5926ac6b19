# SPDX-License-Identifier: Apache-2.0
"""Reads SystemRDL 2.0 through the package systemrdl-compiler: address maps as register tables."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule._typing import override
from ferrule.devices.registers import ELEMENTS, Access, EnumeratedValue, Field, Register, RegisterTable
from ferrule.devices.svd.peripheral import Peripheral
from ferrule.errors import FerruleError, MissingToolError, unknown_name
from ferrule.interface import name_of
from ferrule.reading import read_bytes

if TYPE_CHECKING:
    from systemrdl.node import AddressableNode, AddrmapNode, FieldNode, RegNode

_LISTED = 5
"""Number of the compiler's messages that an error contains."""
_BEHAVIOURS = {
    "swwe": "a signal permits its writes, which the model must check",
    "swwel": "a signal forbids its writes, which the model must check",
    "counter": "the hardware counts, which the model must implement",
    "intr": "an interrupt's cause, whose line the model must drive",
}
"""What properties of a field mean for its model."""
_EFFECTS = {"woclr": Access.CLEAR_BY_ONE, "woset": Access.SET_BY_ONE}


def read_rdl(path: Path) -> RdlFile:
    """Compile a SystemRDL file, whose last address map is the device; Perl in it is refused.

    Raises:
        MissingToolError: the package systemrdl-compiler is not installed.
        FerruleError: the file cannot be read, or the compiler refuses it.
    """
    if find_spec("systemrdl") is None:
        raise MissingToolError("the Python package systemrdl-compiler is missing", hint="pip install 'ferrule[rdl]'")
    _keep_streams()
    from systemrdl.compiler import RDLCompiler
    from systemrdl.messages import MessagePrinter, RDLCompileError, Severity

    found: list[str] = []

    class Messages(MessagePrinter):
        """Collects errors for a FerruleError."""

        @override
        def print_message(self, severity: Severity, text: str, src_ref: Any) -> None:  # noqa: ANN401
            if severity >= Severity.ERROR and len(found) < _LISTED:
                line = getattr(src_ref, "line", None)
                where = getattr(src_ref, "path", None) or path
                found.append(f"{where}:{line}: {text}" if line else text)

    try:
        if b"<%" in read_bytes(path):
            raise FerruleError(f"{path} has Perl in <% %>, which is not run", hint="expand it first")
    except OSError as error:
        raise FerruleError(f"{path} cannot be read: {error.strerror or error}") from error
    compiler = RDLCompiler(message_printer=Messages(), perl_safe_opcodes=[])
    try:
        compiler.compile_file(str(path))
        root = compiler.elaborate()
    except RDLCompileError as error:
        raise FerruleError("\n".join(found) or f"{path}: {error}") from error
    except (OSError, UnicodeError, RecursionError) as error:
        raise FerruleError(f"{path} cannot be compiled: {error}") from error
    return RdlFile(path, root.top)


def _keep_streams() -> None:
    """Import systemrdl and undo what its first import does: colorama wraps the standard streams of that time."""
    import atexit

    before = sys.stdout, sys.stderr
    import colorama.initialise
    import systemrdl  # noqa: F401

    sys.stdout, sys.stderr = before
    atexit.unregister(colorama.initialise.reset_all)


class RdlFile:
    """The address maps of a SystemRDL file that have registers, by the names of their instances."""

    def __init__(self, path: Path, top: AddrmapNode) -> None:
        self.path = path
        self.device = str(top.inst_name)
        self._maps = {name: (node, base) for name, node, base in _maps(top, "", 0)}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the address maps; one within another follows its name and an underscore."""
        return tuple(self._maps)

    def peripheral(self, name: str, *, prefer: Sequence[str] = ()) -> Peripheral:
        """Return an address map as a peripheral without interrupts, which the format does not number.

        Raises:
            FerruleError: there is no such map, a table cannot express it, or `prefer` is given: registers of
                SystemRDL do not overlap.
        """
        if prefer:
            raise FerruleError(
                f"{self.path}: registers of SystemRDL do not overlap", hint=f"leave out {name_of('prefer')}"
            )
        if name not in self._maps:
            raise unknown_name("address map", name, self._maps, where=f"in {self.path}")
        node, base = self._maps[name]
        notes: list[str] = []
        try:
            registers = tuple(_registers(node, "", 0, notes))
            table = RegisterTable(name=name, registers=registers, size_bytes=node.size, doc=_doc(node))
        except FerruleError as error:
            error.at(f"{self.path}: address map {name}")
            raise
        return Peripheral(name=name, table=table, base=base, notes=tuple(dict.fromkeys(notes)))


def _maps(node: AddrmapNode, prefix: str, base: int) -> Iterator[tuple[str, AddrmapNode, int]]:
    from systemrdl.node import AddrmapNode, RegfileNode, RegNode

    name = f"{prefix}{node.inst_name}"
    if any(isinstance(child, RegNode | RegfileNode) for child in node.children()):
        yield name, node, base
    for child in node.children():
        if isinstance(child, AddrmapNode):
            for index, offset in _places(child):
                for inner, found, place in _maps(child, f"{name}_", base + offset):
                    own = f"{name}_{child.inst_name}"
                    yield inner.replace(own, own + index, 1), found, place


def _places(node: AddressableNode) -> list[tuple[str, int]]:
    """Return the index, as part of a name, and the offset of each element of an array, or those of the only one."""
    sizes = node.array_dimensions or []
    if math.prod(sizes) > ELEMENTS:
        raise FerruleError(f"{node.inst_name} has more than {ELEMENTS} elements")
    return [
        ("_".join(map(str, index)), node.raw_address_offset + number * (node.array_stride or 0))
        for number, index in enumerate(product(*map(range, sizes)))
    ]


def _registers(node: AddressableNode, prefix: str, base: int, notes: list[str]) -> Iterator[Register]:
    from systemrdl.node import AddrmapNode, MemNode, RegfileNode, RegNode

    for child in node.children():
        name = f"{prefix}{child.inst_name}"
        if isinstance(child, RegNode):
            yield from _register(child, name, base, notes)
        elif isinstance(child, RegfileNode):
            for index, offset in _places(child):
                yield from _registers(child, f"{name}{index}_", base + offset, notes)
        elif isinstance(child, MemNode):
            notes.append(f"{name}: a memory, which is no register")
        elif not isinstance(child, AddrmapNode):
            notes.append(f"{name}: left out, since it is no register")


def _register(node: RegNode, name: str, base: int, notes: list[str]) -> Iterator[Register]:
    fields = tuple(sorted((_field(each, name, notes) for each in node.fields()), key=lambda each: each.bit))
    reset = 0
    for each in node.fields():
        value = each.get_property("reset")
        if isinstance(value, int):
            reset |= value << each.low
        elif value is not None:
            notes.append(f"{name}.{each.inst_name}: its reset value is that of a signal or another field")
    accesses = {each.access for each in fields}
    access = Access.READ_WRITE
    if len(accesses) == 1 and None not in accesses:
        access = next(iter(accesses)) or access
        fields = tuple(replace(each, access=None) for each in fields)
    plain = node.is_array and len(node.array_dimensions or []) == 1
    places = [("", node.raw_address_offset)] if plain else _places(node)
    for index, offset in places:
        yield Register(
            name=f"{name}%s" if plain else f"{name}{index}",
            offset=base + offset,
            access=access,
            reset=reset,
            fields=fields,
            doc=_doc(node),
            size_bits=int(node.get_property("regwidth")),
            dim=(node.array_dimensions or [0])[0] if plain else 0,
            increment=(node.array_stride or 0) if plain else 0,
        )


def _field(node: FieldNode, register: str, notes: list[str]) -> Field:
    name = f"{register}.{node.inst_name}"
    access = Access.READ_WRITE
    if not node.is_sw_writable:
        access = Access.READ_ONLY
    elif not node.is_sw_readable:
        access = Access.WRITE_ONLY
    effect = _name(node.get_property("onwrite"))
    if effect in _EFFECTS and access is Access.READ_WRITE:
        access = _EFFECTS[effect]
    elif effect:
        notes.append(f"{name}: a write has the effect {effect}, which the model must implement")
    if _name(node.get_property("sw")) in {"rw1", "w1"}:
        notes.append(f"{name}: may be written once only; the model must refuse other writes")
    if not node.is_sw_readable and not node.is_sw_writable:
        notes.append(f"{name}: software has no access; the table lets it read the field")
    reading = _name(node.get_property("onread"))
    if reading not in {"", "rclr"}:
        notes.append(f"{name}: a read has the effect {reading}, which the model must implement")
    notes += (f"{name}: {text}" for key, text in _BEHAVIOURS.items() if node.get_property(key))
    pulses = bool(node.get_property("singlepulse"))
    if pulses and access is Access.READ_ONLY:
        raise FerruleError(f"{name} has the property singlepulse, but software cannot write it")
    encoding = node.get_property("encode")
    values = tuple(
        EnumeratedValue(name=each.name, value=int(each.value), doc=_words(each.rdl_desc or each.rdl_name or ""))
        for each in (encoding or ())
    )
    return Field(
        name=str(node.inst_name),
        bit=node.low,
        width=node.width,
        doc=_doc(node),
        access=access,
        read_clears=reading == "rclr",
        pulses=pulses,
        values=values,
    )


def _name(value: object) -> str:
    """Return the name of a property's enumerated value; empty for none."""
    return "" if value is None else str(getattr(value, "name", value))


def _doc(node: Any) -> str:  # noqa: ANN401 every kind of node has these properties
    return _words(node.get_property("desc") or "")


def _words(text: str) -> str:
    return " ".join(text.split())
