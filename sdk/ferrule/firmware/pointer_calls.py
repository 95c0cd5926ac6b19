# SPDX-License-Identifier: Apache-2.0
"""The functions that a call through a pointer can reach, by the kind of the pointer.

The object files tell which functions have their address taken, and where. The first table says what a function is for,
by this place; a function of the user's is OTHER. The second table says what each of Ferrule's functions calls through
pointers. Every such call can also reach the user's functions, except that of the link's requests, whose table is const.
A function that is in neither table, such as a driver of the user's, can call all but those that only Ferrule calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Flag, auto
from pathlib import Path

from ferrule.firmware.elf32 import FUNCTION, SECTION, Elf32, ElfSection, ElfSymbol, Relocation

_CALLS = {10, 30, 51, 52, 102, 103}
"""Relocations of branches to a fixed target (ELF for the Arm architecture): THM_CALL, THM_JUMP24, JUMP19 and so on."""
_DATA_POINTER = 2
"""R_ARM_ABS32."""
_INDEX_TABLE = 0x7000_0001
"""Type of the sections for unwinding, which the linker script discards."""
_VECTORS = ".ferrule_vectors"
_DRIVER_BYTES, _DRIVER_FUNCTIONS = 28, range(4, 24, 4)
"""Layout of `struct ferrule_driver` (ferrule/driver.h): its name, five functions, the size of the memory."""


class Kind(Flag):
    """What a function whose address is taken is for."""

    REQUEST = auto()
    """Handles a request of the link."""
    MODEL = auto()
    """Runs a model for the link."""
    OPERATOR = auto()
    """The link's callbacks during a run."""
    DRIVER = auto()
    """A member of a `struct ferrule_driver`."""
    BYTES = auto()
    """Reads or writes a byte of a UART, or of a frame."""
    FRAME = auto()
    """Reads or writes a byte of a frame through a transport."""
    TRANSPORT = auto()
    """A member of a `struct ferrule_transport`."""
    OTHER = auto()


_FUNCTIONS: tuple[tuple[str, str, Kind], ...] = (
    (r"link\.c:.*", r"link\.c:\w+", Kind.REQUEST),
    (r"ferrule_\w+_link_model", r"ferrule_\w+_link\.c:run", Kind.MODEL),
    (r"ferrule_link_run|run\.c:.*", r"run\.c:\w+", Kind.OPERATOR),
    (r".*", r"ferrule_uart_transport_(read|write)", Kind.TRANSPORT),
    (r".*", r"ferrule_uart_[a-z0-9]+_(read|write|can_write)", Kind.BYTES),
    (r"uart_woofles_request_init|request\.c:.*", r"request\.c:(read|write)_byte", Kind.FRAME),
)
"""Where the address is, the function, and its kind."""
_CALLERS: tuple[tuple[str, Kind], ...] = (
    (r"main", Kind.MODEL | Kind.BYTES | Kind.OTHER),
    (r"ferrule_link_(poll|serve)|link\.c:\w+", Kind.REQUEST),
    (r"ferrule_link_run|run\.c:\w+", Kind.MODEL | Kind.OPERATOR | Kind.OTHER),
    (r"ferrule_\w+_run|ferrule_\w+\.c:\w+", Kind.OPERATOR | Kind.OTHER),
    (r"ferrule_held_\w+|held\.c:\w+", Kind.OPERATOR | Kind.OTHER),
    (r"ferrule_frame_(receive|send)|frame\.c:\w+", Kind.BYTES | Kind.FRAME | Kind.OTHER),
    (r"ferrule_device_\w+|device\.c:\w+", Kind.DRIVER | Kind.OTHER),
    (r"ferrule_platform_power", Kind.OTHER),
    (r"ferrule_uart_transport_(read|write)|uart_transport\.c:\w+", Kind.BYTES | Kind.OTHER),
    (r"uart_woofles_(ask|execute)|(request|uart_woofles)\.c:\w+", Kind.TRANSPORT | Kind.OTHER),
    (r"(woofles|soft_npu)_execute|(woofles|soft_npu)\.c:\w+", Kind.OTHER),
)
"""A function that calls through pointers, and the kinds that it calls."""
_UNKNOWN_CALLER = ~(Kind.REQUEST | Kind.OPERATOR | Kind.DRIVER)


def called_kinds(keys: Iterable[str]) -> Kind:
    """Return the kinds of functions that a function with these names calls through pointers."""
    for key in keys:
        for pattern, kinds in _CALLERS:
            if _matches(pattern, key):
                return kinds
    return _UNKNOWN_CALLER


def address_taken(objects: Iterable[Path]) -> Mapping[str, Kind]:
    """Return the functions whose address is in data or code, except in the vector table, with their kinds."""
    found: dict[str, Kind] = {}
    for path in objects:
        for place, key in _Pointers(Elf32(path)).places():
            found[key] = found.get(key, Kind(0)) | _kind(place, key)
    return found


def _kind(place: str, key: str) -> Kind:
    if not place:
        return Kind.DRIVER
    for where, function, kind in _FUNCTIONS:
        if _matches(where, place) and _matches(function, key):
            return kind
    return Kind.OTHER


def _matches(pattern: str, key: str) -> bool:
    """Return whether a name matches; GCC appends `.constprop.0` and the like to names of functions."""
    return re.fullmatch(rf"(?:{pattern})(?:\.[\w.]+)?", key) is not None


class _Pointers:
    """The places of an object file at which the linker writes a function's address."""

    def __init__(self, elf: Elf32) -> None:
        self._elf = elf
        self._inside: dict[int, list[ElfSymbol]] = {}
        for symbol in elf.symbols:
            if symbol.type != SECTION and symbol.name[:1] != "$":
                self._inside.setdefault(symbol.section, []).append(symbol)

    def places(self) -> Iterator[tuple[str, str]]:
        """Yield the function or object with the address, "" for a driver, and the function."""
        for number, relocations in self._elf.relocations():
            section = self._elf.sections[number]
            if not section.is_allocated or section.type == _INDEX_TABLE or section.name.startswith(_VECTORS):
                continue
            pointers = [each for each in relocations if each.type not in _CALLS]
            drivers = self._drivers(number, pointers)
            for each in pointers:
                place = self._place(number, section, each)
                for key in self._functions(self._elf.symbols[each.symbol]):
                    yield "" if place is not None and place in drivers else place.key if place else section.name, key

    def _place(self, number: int, section: ElfSection, relocation: Relocation) -> ElfSymbol | None:
        for symbol in self._inside.get(number, ()):
            start = symbol.value & ~1 if section.is_code else symbol.value
            if start <= relocation.offset < start + symbol.size_bytes:
                return symbol
        return None

    def _drivers(self, number: int, pointers: list[Relocation]) -> list[ElfSymbol]:
        """Return the symbols of a section that have the layout and the name of a driver's table."""
        found = []
        for symbol in self._inside.get(number, ()):
            inside = {
                each.offset - symbol.value: bool(list(self._functions(self._elf.symbols[each.symbol])))
                for each in pointers
                if symbol.value <= each.offset < symbol.value + symbol.size_bytes and each.type == _DATA_POINTER
            }
            functions = {offset for offset, is_function in inside.items() if is_function}
            if (
                symbol.size_bytes == _DRIVER_BYTES
                and symbol.key.endswith("_driver")
                and set(inside) - functions == {0}
                and functions <= set(_DRIVER_FUNCTIONS)
            ):
                found.append(symbol)
        return found

    def _functions(self, symbol: ElfSymbol) -> Iterator[str]:
        """Yield the functions that a relocation's symbol can mean: itself, one of another file, or all of a section."""
        if symbol.type == SECTION:
            yield from (each.key for each in self._inside.get(symbol.section, ()) if each.type == FUNCTION)
        elif symbol.type == FUNCTION or not symbol.section:
            yield symbol.key
