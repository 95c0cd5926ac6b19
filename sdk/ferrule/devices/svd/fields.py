# SPDX-License-Identifier: Apache-2.0
"""Reads the fields of a register in an SVD file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.devices.registers import EnumeratedValue, Field, Usage
from ferrule.devices.svd.derivation import Derivation
from ferrule.devices.svd.values import Note, access_of, identifier, number, number_in, places_of, read_clears
from ferrule.devices.svd.xml_tree import Element

_BIT_RANGE = re.compile(r"\[([0-9]{1,3}):([0-9]{1,3})\]")
_DONT_CARE = re.compile(r"(?:#|0[bB])[01xX]+")
_HIGHEST_BIT = 255


@frozen
class FieldReader:
    """Reads the fields of one register."""

    derivation: Derivation
    scopes: tuple[Element, ...]
    """The elements around the fields, the outermost first; the last one is the register."""
    access: str
    effect: str
    """What a write of the register does, as the file spells it."""
    size_bits: int
    note: Note
    """Takes what a table cannot express, after the name of a field."""

    def fields(self) -> tuple[Field, ...]:
        """Return the fields, the lowest first; fields called RESERVED are none.

        A field that overlaps an earlier one, or has its name, is noted and left out.
        """
        container = self.scopes[-1].child("fields")
        kept: list[Field] = []
        taken = 0
        for field in () if container is None else self._all(container):
            if field.name.lower().startswith("reserved"):
                continue
            if taken & field.mask or any(field.name == each.name for each in kept):
                self.note(f".{field.name}: left out, since another field has its bits or its name")
                continue
            taken |= field.mask
            kept.append(field)
        return tuple(sorted(kept, key=lambda each: each.bit))

    def _all(self, container: Element) -> Iterator[Field]:
        for child in container.all("field"):
            element = self.derivation.resolved(child, self.scopes)
            field = self._field(element)
            for index, distance in places_of(element):
                bit = field.bit + distance
                if bit + field.width > self.size_bits:
                    place = f"bits {bit} to {bit + field.width - 1}"
                    raise element.wrong(f"field {field.name} has {place} of a register of {self.size_bits} bits")
                name = field.name.replace("%s", index)
                yield replace(field, name=name, bit=bit)

    def _field(self, element: Element) -> Field:
        name = identifier(element.words("name"), keep="%s")

        def note(text: str) -> None:
            self.note(f".{name}: {text}")

        lowest, width = _bits(element)
        access = None
        if element.words("access") or element.child("modifiedWriteValues") is not None:
            access = access_of(element, self.access, self.effect, note)
        return Field(
            name=name,
            bit=lowest,
            width=width,
            doc=element.words("description"),
            access=access,
            read_clears=read_clears(element, note),
            values=self._values(element, width, note),
        )

    def _values(self, field: Element, width: int, note: Note) -> tuple[EnumeratedValue, ...]:
        kept: dict[str, EnumeratedValue] = {}
        for child in field.all("enumeratedValues"):
            element = self.derivation.resolved(child, (*self.scopes, field))
            usage = Usage(element.choice("usage", list(Usage), Usage.READ_WRITE))
            for each in element.all("enumeratedValue"):
                value = _value(each, width, usage, note)
                if value is None:
                    continue
                same = kept.setdefault(value.name, value)
                if same.value != value.value:
                    note(f"the value {value.value} called {value.name} is left out, since {same.value} has this name")
        return _with_one_usage(tuple(kept.values()))


def _with_one_usage(values: tuple[EnumeratedValue, ...]) -> tuple[EnumeratedValue, ...]:
    """Return the values so that those for both accesses do not mix with those for one."""
    if len({each.usage for each in values}) < 2 or all(each.usage is not Usage.READ_WRITE for each in values):
        return values
    return tuple(replace(each, usage=Usage.READ_WRITE) for each in values)


def _value(element: Element, width: int, usage: Usage, note: Note) -> EnumeratedValue | None:
    """Return an enumerated value; None for one that a table cannot express, which is noted."""
    default = element.words("isDefault")
    if default in {"true", "1"}:
        return None
    text = element.words("value")
    name = identifier(element.words("name") or f"VALUE_{text}")
    found = number_in(text)
    if found is None:
        if _DONT_CARE.fullmatch(text) is None:
            raise element.wrong(f"the enumerated value {name} is {text[:80]!a}, expected a number")
        note(f"the values {text[:80]} called {name} are left out, since they are several")
        return None
    if found >> width:
        note(f"the value {found} called {name} is left out, since the field has {width} bits")
        return None
    return EnumeratedValue(name=name, value=found, usage=usage, doc=element.words("description"))


def _bits(element: Element) -> tuple[int, int]:
    """Return the number of a field's lowest bit and the number of its bits.

    A derived field may state its place in another way than its base; its own children come first.
    """
    ways = dict.fromkeys(each.tag for each in element.children if each.tag in {"bitRange", "lsb", "bitOffset"})
    if not ways:
        raise element.wrong("<field> has no <bitOffset>, <lsb> or <bitRange>")
    places = [_place(element, way) for way in ways]
    lowest, width = places[0]
    width = next((each for each in (width, *(other for _, other in places[1:])) if each is not None), 1)
    if width < 1:
        raise element.wrong(f"a field has the bits {lowest} to {lowest + width - 1}")
    return lowest, width


def _place(element: Element, way: str) -> tuple[int, int | None]:
    """Return the lowest bit and the number of bits that one way of stating them gives, None if it leaves it open."""
    if way == "bitRange":
        text = element.words("bitRange")
        match = _BIT_RANGE.fullmatch(text)
        if match is None:
            raise element.wrong(f"<bitRange> is {text[:80]!a}, expected [highest:lowest]")
        return int(match[2]), int(match[1]) - int(match[2]) + 1
    if way == "lsb":
        lowest = number(element, "lsb", highest=_HIGHEST_BIT)
        return lowest, number(element, "msb", highest=_HIGHEST_BIT) - lowest + 1
    lowest = number(element, "bitOffset", highest=_HIGHEST_BIT)
    stated = element.child("bitWidth") is not None
    return lowest, number(element, "bitWidth", highest=_HIGHEST_BIT) if stated else None
