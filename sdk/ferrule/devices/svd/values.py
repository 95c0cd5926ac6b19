# SPDX-License-Identifier: Apache-2.0
"""Reads the texts of SVD elements: numbers, names, arrays, accesses and the properties that elements inherit."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ferrule._frozen import frozen
from ferrule.devices.registers import ELEMENTS, Access
from ferrule.devices.svd.xml_tree import Element

_NUMBER = re.compile(r"\+?(?:0[xX](?P<hex>[0-9A-Fa-f]{1,16})|(?:#|0[bB])(?P<bits>[01]{1,64})|(?P<decimal>[0-9]{1,20}))")
_HIGHEST = (1 << 64) - 1
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})|([A-Za-z])-([A-Za-z])")
_INDEX = re.compile(r"[A-Za-z0-9_]{1,100}")
_OTHER = re.compile(r"[^A-Za-z0-9_]+")
_ACCESS = {
    "read-write": Access.READ_WRITE,
    "read-only": Access.READ_ONLY,
    "write-only": Access.WRITE_ONLY,
    "writeOnce": Access.WRITE_ONLY,
    "writeonce": Access.WRITE_ONLY,
    "read-writeOnce": Access.READ_WRITE,
    "read-writeonce": Access.READ_WRITE,
}
_EFFECTS = {"oneToClear": Access.CLEAR_BY_ONE, "oneToSet": Access.SET_BY_ONE}
_KNOWN_EFFECTS = {*_EFFECTS, "modify", "oneToToggle", "zeroToClear", "zeroToSet", "zeroToToggle", "clear", "set"}
_READ_ACTIONS = {"clear", "set", "modify", "modifyExternal"}

Note = Callable[[str], None]
"""Takes what a table cannot express."""


def number_in(text: str) -> int | None:
    """Return the number that a text states in decimal, hexadecimal (0x) or binary (# or 0b); None if it states none."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    if match["hex"]:
        return int(match["hex"], 16)
    return int(match["bits"], 2) if match["bits"] else int(match["decimal"])


def number(element: Element, tag: str, *, highest: int = _HIGHEST, default: int | None = None) -> int:
    """Return the number in a child; FerruleError if it is malformed, too high, or missing without a default."""
    child = element.child(tag)
    if child is None:
        if default is None:
            raise element.wrong(f"<{element.tag}> has no <{tag}>")
        return default
    found = number_in(child.text.strip())
    if found is None or found > highest:
        raise child.wrong(f"<{tag}> is {child.text.strip()[:80]!a}, expected a number of 0 to {highest:#x}")
    return found


def identifier(name: str, *, keep: str = "") -> str:
    """Return a name as a C identifier: other characters become underscores; `[%s]` becomes `%s` if that is kept."""
    name = name[:200].replace("[%s]", "%s")
    parts = name.split(keep, 1) if keep else [name]
    plain = keep.join(_OTHER.sub("_", part) for part in parts) or "_"
    return f"_{plain}" if plain[0].isdigit() else plain


@frozen
class Dim:
    """An array."""

    indices: tuple[str, ...]
    increment: int

    @property
    def is_plain(self) -> bool:
        """Whether the indices are 0, 1, 2 and so on."""
        return all(each == str(position) for position, each in enumerate(self.indices))


def dim_of(element: Element) -> Dim | None:
    """Return the array that an element declares, or None; FerruleError if it is malformed."""
    if element.child("dim") is None:
        return None
    count = number(element, "dim", highest=ELEMENTS)
    if not count:
        raise element.wrong("<dim> is 0, expected 1 or more")
    indices = _indices(element, count)
    if len(indices) != count:
        raise element.wrong(f"<dimIndex> has {len(indices)} indices, expected {count}")
    return Dim(indices=indices, increment=number(element, "dimIncrement"))


def places_of(element: Element) -> list[tuple[str, int]]:
    """Return the index and the distance of each element of an array; those of the only one without an array."""
    dim = dim_of(element)
    if dim is None:
        return [("", 0)]
    return [(index, position * dim.increment) for position, index in enumerate(dim.indices)]


def _indices(element: Element, count: int) -> tuple[str, ...]:
    text = element.words("dimIndex")
    if not text:
        return tuple(map(str, range(count)))
    match = _RANGE.fullmatch(text)
    if match is None:
        indices = tuple(each.strip() for each in text.split(","))
        if not all(map(_INDEX.fullmatch, indices)):
            raise element.wrong(f"<dimIndex> is {text[:80]!a}, expected a range or names with commas between them")
        return indices
    if match[1] is not None:
        first, last = int(match[1]), int(match[2])
        return tuple(map(str, range(first, min(last, first + ELEMENTS) + 1)))
    return tuple(map(chr, range(ord(match[3]), ord(match[4]) + 1)))


@frozen
class Properties:
    """What registers inherit from the elements around them."""

    size: int = 32
    access: str = "read-write"
    reset: int = 0
    reset_mask: int = _HIGHEST

    def of(self, element: Element) -> Properties:
        """Return the properties within an element."""
        return replace(
            self,
            access=element.choice("access", _ACCESS, self.access),
            size=number(element, "size", default=self.size),
            reset=number(element, "resetValue", default=self.reset),
            reset_mask=number(element, "resetMask", default=self.reset_mask),
        )


def access_of(element: Element, outer_access: str, outer_effect: str, note: Note) -> Access:
    """Return the access to a register or a field, and what a write does; an element that states none has the outer."""
    access = element.choice("access", _ACCESS, outer_access)
    effect = element.words("modifiedWriteValues") or outer_effect
    if effect and effect not in _KNOWN_EFFECTS:
        raise element.wrong(f"<modifiedWriteValues> is {effect[:80]!a}")
    found = _ACCESS[access]
    if access.lower().endswith("once"):
        note("may be written once only; the model must refuse other writes")
    if found is Access.READ_ONLY or effect in {"", "modify"}:
        return found
    if found is Access.READ_WRITE and effect in _EFFECTS:
        return _EFFECTS[effect]
    note(f"a write has the effect {effect}, which the model must implement")
    return found


def read_clears(element: Element, note: Note) -> bool:
    """Return whether a read clears a register or a field; FerruleError if its effect is unknown."""
    action = element.words("readAction")
    if action and action not in _READ_ACTIONS:
        raise element.wrong(f"<readAction> is {action[:80]!a}, expected one of {', '.join(sorted(_READ_ACTIONS))}")
    if action not in {"", "clear"}:
        note(f"a read has the effect {action}, which the model must implement")
    return action == "clear"
