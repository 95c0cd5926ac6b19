# SPDX-License-Identifier: Apache-2.0
"""Reads a firmware's ELF file: sections, groups, symbols, initial contents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.architectures import ARCHITECTURES, Architecture
from ferrule.errors import FerruleError, unknown_name
from ferrule.reading import read_bytes

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile


class Group(StrEnum):
    """The purpose of a section; the first four occupy flash, and `data` occupies RAM as well."""

    CODE = "code"
    CONSTANTS = "constants"
    WEIGHTS = "weights"
    DATA = "data"
    BSS = "bss"
    WORKSPACE = "workspace"
    STACK = "stack"


FLASH_GROUPS = (Group.CODE, Group.CONSTANTS, Group.WEIGHTS, Group.DATA)
RAM_GROUPS = (Group.DATA, Group.BSS, Group.WORKSPACE, Group.STACK)

_LINK = "serve.c"
_LINK_OF_A_MODEL = "_link.c"
_FAULT_STACK = "ferrule_fault_stack"
_WORKSPACE = ".ferrule_workspace"
"""Parts of it in other memories of the board have their names behind a dot."""
_GROUPS: Mapping[str, Group] = {
    ".text": Group.CODE,
    ".rodata": Group.CONSTANTS,
    ".ferrule_identity": Group.CONSTANTS,
    ".ferrule_sizes": Group.CONSTANTS,
    ".ferrule_weights": Group.WEIGHTS,
    ".data": Group.DATA,
    ".bss": Group.BSS,
    _WORKSPACE: Group.WORKSPACE,
    ".ferrule_stack": Group.STACK,
}


@frozen
class Section:
    """A section that occupies memory on the board."""

    name: str
    address: int
    load_address: int
    """Address of its initial contents; it differs from `address` for initialised data only."""
    size_bytes: int
    group: Group


@frozen
class Segment:
    """Contents of memory before reset."""

    address: int
    data: bytes


@frozen
class Symbol:
    """A function or object; `size_bytes` is 0 for a symbol of the linker script."""

    name: str
    address: int
    size_bytes: int
    is_function: bool
    source: str = ""
    """The name of the C file of a symbol that is local to it; empty for a global symbol."""


@frozen
class StackBound:
    """An upper bound of a firmware's stack under the assumptions in docs/boards.md, or the reason why none is known."""

    size_bytes: int | None = None
    exception_bytes: int = 0
    """The part for one exception: its handler, and the registers that the core saves."""
    path: tuple[str, ...] = ()
    """The functions on the deepest path of calls, from the reset handler."""
    reason: str = ""


UNKNOWN_BOUND = StackBound(reason="only the build of a project computes it")


@dataclass(frozen=True, kw_only=True)
class Image:
    """A linked firmware; the addresses of functions are even, without Arm's bit for Thumb."""

    path: Path
    architecture: Architecture
    entry: int
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...]
    """Sorted by address."""
    stack: StackBound = UNKNOWN_BOUND
    """The bound that the build has computed."""

    @override
    def __repr__(self) -> str:
        return f"<Image {self.path}: flash {self.flash_bytes:,} B, RAM {self.ram_bytes:,} B>"

    @cached_property
    def groups(self) -> Mapping[Group, int]:
        """Size of every group in bytes."""
        sizes = dict.fromkeys(Group, 0)
        for section in self.sections:
            sizes[section.group] += section.size_bytes
        return sizes

    @property
    def flash_bytes(self) -> int:
        """Bytes of flash that the firmware occupies."""
        return sum(self.groups[group] for group in FLASH_GROUPS)

    @property
    def link_bytes(self) -> int:
        """Bytes of RAM that the variables of the link to a host occupy: its buffer, and the model's counters."""
        return self._variable_bytes(lambda one: one.source == _LINK or one.source.endswith(_LINK_OF_A_MODEL))

    @property
    def fault_stack_bytes(self) -> int:
        """Bytes of RAM that the stack of the fault handler occupies."""
        return self._variable_bytes(lambda one: one.name == _FAULT_STACK)

    def _variable_bytes(self, is_counted: Callable[[Symbol], bool]) -> int:
        ram = [section for section in self.sections if section.group in RAM_GROUPS]
        return sum(
            one.size_bytes
            for one in self.symbols
            if not one.is_function
            and is_counted(one)
            and any(each.address <= one.address < each.address + each.size_bytes for each in ram)
        )

    @property
    def ram_bytes(self) -> int:
        """Bytes of RAM that the firmware occupies, including the whole stack."""
        return sum(self.groups[group] for group in RAM_GROUPS)

    def section(self, name: str) -> Section | None:
        """Return a section by name, or None if the linker omitted it because it is empty."""
        return next((section for section in self.sections if section.name == name), None)

    def address_of(self, name: str) -> int:
        """Return the address of a symbol; FerruleError if there is none of that name."""
        symbol = self._by_name.get(name)
        if symbol is None:
            raise unknown_name("symbol", name, self._by_name, where=f"in {self.path.name}")
        return symbol.address

    def find(self, name: str) -> int:
        """Return the address of a symbol; 0 if there is none of that name."""
        return self.address_of(name) if self.has(name) else 0

    def has(self, name: str) -> bool:
        """Return whether there is a symbol of that name."""
        return name in self._by_name

    def read(self, address: int, size_bytes: int) -> bytes:
        """Return the initial contents of a range; empty if no single segment contains it."""
        for segment in self.segments:
            offset = address - segment.address
            if offset >= 0 and offset + size_bytes <= len(segment.data):
                return segment.data[offset : offset + size_bytes]
        return b""

    def symbol_at(self, address: int) -> Symbol | None:
        """Return the function or object that contains an address, or None."""
        even = address & ~1
        found = (each for each in reversed(self.symbols) if each.address <= even < each.address + each.size_bytes)
        return next(found, None)

    def describe(self, address: int) -> str:
        """Return the symbol and offset of an address as `name+0x12`, or `?` outside all symbols."""
        symbol = self.symbol_at(address)
        if symbol is None:
            return "?"
        offset = (address & ~1) - symbol.address
        return f"{symbol.name}+{offset:#x}" if offset else symbol.name

    @cached_property
    def _by_name(self) -> Mapping[str, Symbol]:
        return {symbol.name: symbol for symbol in self.symbols}


def read_image(path: Path) -> Image:
    """Read the ELF file of a firmware for a core of 32 bits.

    Raises:
        FerruleError: the file cannot be read, or is not such a firmware.
    """
    from elftools.elf.elffile import ELFFile

    try:
        data = read_bytes(path)
    except OSError as error:
        raise FerruleError(f"cannot read {path}: {error}") from None
    try:
        return _image(path, ELFFile(BytesIO(data)))
    except FerruleError:
        raise
    except Exception as error:  # a malformed file makes pyelftools raise whatever it runs into
        detail = str(error) if str(error).isprintable() else ""
        raise FerruleError(f"{path} is not a valid ELF file: {detail or type(error).__name__}") from error


def _image(path: Path, elf: ELFFile) -> Image:
    architecture = next((each for each in ARCHITECTURES if each.elf.machine == elf["e_machine"]), None)
    if architecture is None or elf.elfclass != 32 or not elf.little_endian:
        known = " or ".join(each.elf.title for each in ARCHITECTURES)
        raise FerruleError(
            f"{path} is not a firmware for a 32-bit little-endian {known} core", hint="build it for the board first"
        )
    return Image(
        path=path,
        architecture=architecture,
        entry=elf["e_entry"] & ~1,
        sections=tuple(_sections(elf)),
        segments=tuple(_segments(elf)),
        symbols=tuple(sorted(_symbols(elf), key=lambda symbol: (symbol.address, symbol.name))),
    )


def _segments(elf: ELFFile) -> Iterator[Segment]:
    for segment in elf.iter_segments("PT_LOAD"):
        size = segment["p_filesz"]
        if size:
            data = segment.data()
            if len(data) != size:
                raise ValueError(f"a segment has {size} bytes, and the file ends after {len(data)} of them")
            yield Segment(address=segment["p_paddr"], data=data)


def _sections(elf: ELFFile) -> Iterator[Section]:
    from elftools.elf.constants import SH_FLAGS

    segments = list(elf.iter_segments("PT_LOAD"))
    for section in elf.iter_sections():
        if not section["sh_flags"] & SH_FLAGS.SHF_ALLOC or not section["sh_size"]:
            continue
        address, is_empty = section["sh_addr"], section["sh_type"] == "SHT_NOBITS"
        load_address = address
        for segment in () if is_empty else segments:
            if segment["p_vaddr"] <= address < segment["p_vaddr"] + segment["p_filesz"]:
                load_address = segment["p_paddr"] + address - segment["p_vaddr"]
        other = Group.DATA if load_address != address else Group.CONSTANTS
        if is_empty or section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR:
            other = Group.BSS if is_empty else Group.CODE
        yield Section(
            name=section.name,
            address=address,
            load_address=load_address,
            size_bytes=section["sh_size"],
            group=_GROUPS.get(_WORKSPACE if section.name.startswith(f"{_WORKSPACE}.") else section.name, other),
        )


def _symbols(elf: ELFFile) -> Iterator[Symbol]:
    from elftools.elf.sections import SymbolTableSection

    table = elf.get_section_by_name(".symtab")
    if not isinstance(table, SymbolTableSection):
        return
    source = ""
    for symbol in table.iter_symbols():
        kind = symbol["st_info"]["type"]
        if kind == "STT_FILE":  # the local symbols of the file follow
            source = PurePosixPath(symbol.name).name
        if not symbol.name or symbol.name.startswith("$") or symbol["st_shndx"] == "SHN_UNDEF":
            continue
        if kind in {"STT_FILE", "STT_SECTION"}:
            continue
        is_function = kind == "STT_FUNC"
        yield Symbol(
            name=symbol.name,
            address=symbol["st_value"] & ~1 if is_function else symbol["st_value"],
            size_bytes=symbol["st_size"],
            is_function=is_function,
            source=source if symbol["st_info"]["bind"] == "STB_LOCAL" else "",
        )
