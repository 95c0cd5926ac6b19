# SPDX-License-Identifier: Apache-2.0
"""Reads CMSIS-SVD files: the peripherals of a device as register tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ferrule.devices.registers import ELEMENTS, Register, RegisterTable
from ferrule.devices.svd.derivation import Derivation
from ferrule.devices.svd.fields import FieldReader
from ferrule.devices.svd.peripheral import Interrupt, Peripheral
from ferrule.devices.svd.values import (
    Note,
    Properties,
    access_of,
    dim_of,
    identifier,
    number,
    places_of,
    read_clears,
)
from ferrule.devices.svd.xml_tree import Element, read_xml
from ferrule.errors import FerruleError, unknown_name
from ferrule.interface import name_of

_CONFLICTS = 10
"""Number of overlaps that an error lists."""
_WIDTHS = (8, 16, 32)


def read_svd(path: Path) -> SvdFile:
    """Open an SVD file; its peripherals are read when they are asked for.

    Raises:
        FerruleError: the file cannot be read, or is no SVD file.
    """
    root = read_xml(path)
    if root.tag != "device":
        raise root.wrong(f"the root element is <{root.tag[:40]}>, expected <device> of a CMSIS-SVD file")
    return SvdFile(path, root)


class SvdFile:
    """The peripherals of a device, by name."""

    def __init__(self, path: Path, root: Element) -> None:
        self.path = path
        self.device = root.words("name")
        self._root = root
        self._derivation = Derivation()
        self._elements: dict[str, tuple[Element, int]] = {}
        peripherals = root.child("peripherals")
        for element in () if peripherals is None else peripherals.all("peripheral"):
            name = element.words("name")
            for index, distance in places_of(element):
                plain = name.replace("[%s]", index).replace("%s", index)
                self._elements.setdefault(plain, (element, distance))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the peripherals, in the order of the file."""
        return tuple(self._elements)

    def peripheral(self, name: str, *, prefer: Sequence[str] = ()) -> Peripheral:
        """Return a peripheral.

        Extensions of vendors and reserved fields are left out. `prefer` has patterns such as `CCMR1_Output`: where
        registers overlap, the first one that matches is read, and the others are left out.

        Raises:
            FerruleError: there is no such peripheral, a part of it is malformed, or registers overlap and `prefer`
                chooses none of them.
        """
        if name not in self._elements:
            raise unknown_name("peripheral", name, self._elements, where=f"in {self.path}")
        element, distance = self._elements[name]
        element = self._derivation.resolved(element, (self._root,))
        reader = _Reader(self._derivation, (self._root, element), prefer)
        properties = Properties().of(self._root).of(element)
        registers = reader.registers(element.child("registers"), properties)
        try:
            table = RegisterTable(
                name=identifier(name),
                registers=tuple(registers),
                size_bytes=_window_bytes(element, registers),
                doc=element.words("description"),
            )
        except FerruleError as error:
            error.at(f"{element.path}:{element.line}: peripheral {name}")
            raise
        base = number(element, "baseAddress", highest=(1 << 32) - 1) + distance
        interrupts = tuple(dict.fromkeys(_interrupt(each) for each in element.all("interrupt")))
        return Peripheral(
            name=table.name, table=table, base=base, interrupts=interrupts, notes=tuple(dict.fromkeys(reader.notes))
        )


def _window_bytes(element: Element, registers: Sequence[Register]) -> int:
    """Return the size of the window that has all address blocks and all registers."""
    blocks = (number(each, "offset") + number(each, "size") for each in element.all("addressBlock"))
    ends = (each.offset + max(each.dim - 1, 0) * each.increment + each.size_bytes for each in registers)
    return max([0, *blocks, *ends])


def _interrupt(element: Element) -> Interrupt:
    name = identifier(element.words("name") or "IRQ")
    return Interrupt(name=name, number=number(element, "value"), doc=element.words("description"))


class _Found(NamedTuple):
    """A register and the element that declares it."""

    register: Register
    element: Element


@dataclass
class _Reader:
    """Reads the registers of one peripheral."""

    _derivation: Derivation
    _scopes: tuple[Element, ...]
    _prefer: Sequence[str]
    notes: list[str] = field(default_factory=list)
    _count: int = 0

    def registers(self, container: Element | None, properties: Properties) -> list[Register]:
        """Return the registers in the order of their offsets."""
        if container is None:
            return []
        found = self._walk(container, self._scopes, "", 0, properties)
        places: dict[int, _Found] = {}
        names: dict[str, _Found] = {}
        kept: list[Register] = []
        conflicts: list[tuple[_Found, _Found]] = []
        for each in sorted(found, key=lambda each: not self._is_preferred(each.register)):
            other = self._in_the_way(each, places, names)
            if other is None:
                kept.append(each.register)
            elif self._is_preferred(other.register):
                self.notes.append(f"{each.register.name}: left out, since it overlaps {other.register.name}")
            else:
                conflicts.append((each, other))
        if conflicts:
            lines = [
                f"{one.register.name} and {other.register.name} (line {one.element.line})"
                for one, other in conflicts[:_CONFLICTS]
            ]
            if len(conflicts) > _CONFLICTS:
                lines.append(f"{len(conflicts) - _CONFLICTS} more")
            raise conflicts[0][0].element.wrong(
                f"registers overlap or have the same name: {', '.join(lines)}",
                f"choose the ones to read by {name_of('prefer')}, a name or a pattern; '*' takes the first of each",
            )
        return sorted(kept, key=lambda register: register.offset)

    def _is_preferred(self, register: Register) -> bool:
        return any(fnmatchcase(register.name, pattern) for pattern in self._prefer)

    def _in_the_way(self, each: _Found, places: dict[int, _Found], names: dict[str, _Found]) -> _Found | None:
        """Return a register that overlaps another one or has its name; otherwise take its places."""
        elements = each.register.elements()
        own = [byte for single in elements for byte in range(single.offset, single.offset + single.size_bytes)]
        others = (*(places.get(byte) for byte in own), *(names.get(single.name) for single in elements))
        other = next(filter(None, others), None)
        if other is None:
            places |= dict.fromkeys(own, each)
            names |= {single.name: each for single in elements}
        return other

    def _walk(
        self, container: Element, scopes: tuple[Element, ...], prefix: str, base: int, properties: Properties
    ) -> Iterator[_Found]:
        for child in container.children:
            if child.tag not in {"register", "cluster"}:
                continue
            element = self._derivation.resolved(child, scopes)
            if child.tag == "register":
                register = self._register(element, scopes, prefix, base, properties)
                self._spend(element, register.dim or 1)
                yield _Found(register, element)
                continue
            places = places_of(element)
            name = identifier(element.words("name"), keep="%s")
            offset = base + number(element, "addressOffset")
            for index, distance in places:
                self._spend(element, 1)
                inner = f"{prefix}{name.replace('%s', index)}_"
                yield from self._walk(element, (*scopes, element), inner, offset + distance, properties.of(element))

    def _spend(self, element: Element, count: int) -> None:
        self._count += count
        if self._count > ELEMENTS:
            raise element.wrong(f"the peripheral has more than {ELEMENTS} registers")

    def _register(
        self, element: Element, scopes: tuple[Element, ...], prefix: str, base: int, outer: Properties
    ) -> Register:
        properties = outer.of(element)
        dim = dim_of(element)
        name = prefix + identifier(element.words("name"), keep="%s")
        if dim is None:
            name = name.replace("%s", "")
        elif "%s" not in name:
            name += "%s"

        def note(text: str) -> None:
            apart = "" if text.startswith(".") else ": "
            self.notes.append(f"{name}{apart}{text}")

        size_bits = _size(element, name, properties.size, note)
        effect = element.words("modifiedWriteValues")
        reader = FieldReader(
            derivation=self._derivation,
            scopes=(*scopes, element),
            access=properties.access,
            effect=effect,
            size_bits=size_bits,
            note=note,
        )
        return Register(
            name=name,
            offset=base + number(element, "addressOffset"),
            access=access_of(element, properties.access, effect, note),
            reset=properties.reset & properties.reset_mask & ((1 << size_bits) - 1),
            fields=reader.fields(),
            doc=element.words("description"),
            size_bits=size_bits,
            read_clears=read_clears(element, note),
            dim=0 if dim is None else len(dim.indices),
            increment=0 if dim is None else dim.increment,
            indices=() if dim is None or dim.is_plain else dim.indices,
        )


def _size(element: Element, name: str, size: int, note: Note) -> int:
    """Return the size of a register in bits, which is rounded up to one that a table can have."""
    for width in _WIDTHS:
        if 0 < size <= width:
            if size != width:
                note(f"has {size} bits, read as {width}")
            return width
    raise element.wrong(f"register {name} has {size} bits, expected 1 to 32")
