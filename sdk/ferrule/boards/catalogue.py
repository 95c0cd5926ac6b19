# SPDX-License-Identifier: Apache-2.0
"""Finds boards by name and combines the two files that describe each."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ferrule.architectures import ARCHITECTURES, Cpu, architecture_of, core_of
from ferrule.backends.target import Memory, MemoryKind
from ferrule.boards.board import (
    DEFAULT_STACK_BYTES,
    NANOSECONDS_PER_SECOND,
    Board,
    Peripheral,
    Placement,
    QemuMachine,
    check_name,
)
from ferrule.boards.cores import cpu
from ferrule.boards.description import EXPANSION_BYTES, BoardDescription, read_description
from ferrule.boards.parser import read_platform
from ferrule.boards.repl import Entry, Platform, Range
from ferrule.boards.tags import Tag, tags
from ferrule.boards.timing_tables import board_energy, board_timing
from ferrule.errors import FerruleError, place, unknown_name
from ferrule.reading import is_file, is_folder, list_folder
from ferrule.record import variable
from ferrule.rendering import check_text
from ferrule.resources import root

DESCRIPTION_NAME = "board.toml"
SEARCH_VARIABLE = "FERRULE_BOARDS"

_MEMORIES = ("Memory.MappedMemory", "Memory.ArrayMemory")
_ADDRESS_END = 1 << 32
_WHY_COLUMNS = 90
LONGEST_NAME = 100
"""Characters in the name of a board."""
_KNOWN_SIZES = {
    **{name: size for each in ARCHITECTURES for name, size in each.platform.window_bytes.items()},
    "UART.CMSDK_APB_UART": 0x1000,
    "UART.NRF52840_UART": 0x1000,
    "UART.PL011": 0x1000,
}
"""Window sizes in bytes of Renode classes whose registration needs no size."""


def search_folders() -> tuple[Path, ...]:
    """Return the folders that hold boards: first those in the variable FERRULE_BOARDS, then Ferrule's own."""
    extra = (Path(folder) for folder in variable(SEARCH_VARIABLE).split(os.pathsep) if folder)
    return (*extra, root() / "boards")


def board_names() -> list[str]:
    """Return the sorted names of all boards in the search folders."""
    names: set[str] = set()
    for folder in _existing_folders():
        names.update(each.name for each in list_folder(folder, "*/") if is_file(each / DESCRIPTION_NAME))
    return sorted(names)


def _existing_folders() -> Iterator[Path]:
    for folder in search_folders():
        if not is_folder(folder):
            raise FerruleError(f"{SEARCH_VARIABLE} names {folder}, which is not a folder")
        yield folder


def load_board(name: str | Path) -> Board:
    """Load a board by its name, or by the path of its folder.

    Raises:
        FerruleError: there is no such board (the hint lists similar names), or one of its files is invalid.
    """
    path = Path(name)
    if isinstance(name, Path) or os.sep in name:
        if is_file(path / DESCRIPTION_NAME):
            return _load(path.resolve())
        raise FerruleError(f"there is no board in {path}", hint=f"a board is a folder with a {DESCRIPTION_NAME}")
    for folder in _existing_folders():
        if name not in {"", ".", ".."} and is_file(folder / name / DESCRIPTION_NAME):
            return _load((folder / name).resolve())
    raise unknown_name("board", name, board_names())


def _load(folder: Path) -> Board:
    check_text(folder.name, f"the name of the board in {str(folder)!a}", longest=LONGEST_NAME)
    file = folder / DESCRIPTION_NAME
    description = read_description(file)
    platform = read_platform(folder / description.platform)
    memories = _memories(platform, description, file)
    core = cpu(platform, description.cpu, file)
    peripherals = tuple(
        _peripheral(entry) for entry in platform.entries.values() if entry.type not in _MEMORIES and _on_bus(entry)
    )
    places: tuple[Memory | Peripheral, ...] = (*memories, *peripherals)
    tagged = tags(platform)
    _check_overlaps(places, platform)
    by_name = {peripheral.name: peripheral for peripheral in peripherals}
    names = [memory.name for memory in memories]
    with place(str(file)):
        _check_core(core, memories, peripherals)
        _check_expansions((*places, *tagged), description, core)
        _check_setup((*peripherals, *tagged), by_name, description)
        return Board(
            name=folder.name,
            title=description.title,
            cpu=core,
            clock_hz=description.clock_hz,
            memories=memories,
            peripherals=peripherals,
            link_uart=_uart(by_name, description.uarts.link, "uarts.link"),
            console_uart=_uart(by_name, description.uarts.console, "uarts.console"),
            placement=_placement(memories, description),
            qemu=_qemu(places, by_name, description),
            expansions=description.expansions,
            setup=description.setup,
            tags=tagged,
            timing=board_timing(description.timing, names),
            energy=board_energy(description.energy, names, description.placement.code),
            flags=description.flags.by_toolchain,
            folder=folder,
            platform=platform.file,
            files=(file, *platform.files),
        )


def _check_core(core: Cpu, memories: tuple[Memory, ...], peripherals: tuple[Peripheral, ...]) -> None:
    for memory in memories:
        if memory.cacheable and not core_of(core.type).has_data_cache:
            raise FerruleError(
                f"memories.{memory.name} is cacheable, but a {core.type} has no data cache",
                hint="a cache outside of the core is not supported: leave it off for this memory",
            )
    for name, index in _lines(peripherals, core):
        if index >= core.interrupts:
            raise FerruleError(f"cpu.interrupts is {core.interrupts}, but '{name}' has interrupt {index}")


def _lines(places: Iterable[Memory | Peripheral | Tag], core: Cpu) -> Iterator[tuple[str, int]]:
    """Yield the peripherals' names with the lines of the core's interrupt controller that they are connected to."""
    peripherals = [each for each in places if isinstance(each, Peripheral)]
    kind = architecture_of(core.type).platform.controller
    controllers = {each.name for each in peripherals if each.type == kind}
    for each in peripherals:
        for line in each.interrupts:
            if line.target in controllers:
                yield each.name, line.index


def _on_bus(entry: Entry) -> bool:
    return any(place.bus == "sysbus" and place.address is not None for place in entry.registrations)


def _window(entry: Entry) -> tuple[list[int], int]:
    """Return an entry's bus addresses and the size of its window in bytes."""
    addresses: list[int] = []
    sizes: set[int] = set()
    stated = entry.integer("size") if entry.type in _MEMORIES else None
    for each in entry.registrations:
        if each.bus != "sysbus" or each.address is None:
            continue
        addresses.append(each.address)
        span = each.point.size if isinstance(each.point, Range) else each.size_bytes
        size = span or stated or _KNOWN_SIZES.get(entry.type)
        if size is None:
            raise FerruleError(
                f"{entry.place}: the size of '{entry.name}' is not known",
                hint=f"write its registration as <{each.address:#x}, +size>",
            )
        sizes.add(size)
        if size <= 0 or each.address + size > _ADDRESS_END:
            raise FerruleError(f"{entry.place}: '{entry.name}' does not fit into 32 bits of address")
    if len(sizes) != 1 or (stated is not None and sizes != {stated}):
        raise FerruleError(f"{entry.place}: the sizes given for '{entry.name}' differ")
    return addresses, sizes.pop()


def _memories(platform: Platform, description: BoardDescription, file: Path) -> tuple[Memory, ...]:
    entries = {entry.name: entry for entry in platform.of_type(*_MEMORIES)}
    for name in description.memories:
        if name not in entries:
            raise FerruleError(f"{file}: {unknown_name('memory', name, entries)}", hint=f"see {platform.file}")
    found = []
    for name, entry in entries.items():
        check_name(name, f"{entry.place}: the name")
        if name not in description.memories:
            raise FerruleError(f"{file}: memories.{name} is missing", hint=f"{entry.place} has a memory of that name")
        if not _on_bus(entry):
            raise FerruleError(f"{entry.place}: memory '{name}' is not registered at an address of sysbus")
        (address, *aliases), size = _window(entry)
        more = description.memories[name]
        if more.cacheable != (more.line_bytes > 0):
            raise FerruleError(
                f"{file}: memories.{name}: a cacheable memory needs line_bytes, and no other may have it"
            )
        found.append(
            Memory(
                name=name,
                address=address,
                size_bytes=size,
                aliases=tuple(aliases),
                **msgspec.structs.asdict(more),
            )
        )
    return tuple(found)


def _peripheral(entry: Entry) -> Peripheral:
    (address, *aliases), size = _window(entry)
    return Peripheral(
        name=entry.name,
        type=entry.type,
        address=address,
        size_bytes=size,
        properties=entry.properties,
        interrupts=entry.interrupts,
        aliases=tuple(aliases),
    )


def _spans(places: Iterable[Memory | Peripheral | Tag]) -> list[tuple[int, int, str]]:
    """Return the first address, the end and the name of each place, also for its aliases."""
    return [
        (address, address + each.size_bytes, each.name)
        for each in places
        for address in (each.address, *(() if isinstance(each, Tag) else each.aliases))
    ]


def _check_overlaps(places: tuple[Memory | Peripheral, ...], platform: Platform) -> None:
    for (_, end, name), (begin, _, other) in itertools.pairwise(sorted(_spans(places))):
        if begin < end:
            raise FerruleError(f"{platform.file}: '{name}' and '{other}' overlap at {begin:#010x}")


def _uart(peripherals: dict[str, Peripheral], name: str, key: str) -> Peripheral:
    uarts = {each: peripheral for each, peripheral in peripherals.items() if peripheral.type.startswith("UART.")}
    if name not in uarts:
        with place(key):
            raise unknown_name("UART", name, uarts)
    return uarts[name]


def _placement(memories: tuple[Memory, ...], description: BoardDescription) -> Placement:
    wanted = description.placement
    by_name = {memory.name: memory for memory in memories}
    for part, kind in (
        ("code", MemoryKind.FLASH),
        ("weights", MemoryKind.FLASH),
        ("data", MemoryKind.RAM),
        ("workspace", MemoryKind.RAM),
        ("stack", MemoryKind.RAM),
    ):
        name = str(getattr(wanted, part))
        if name not in by_name:
            with place(f"placement.{part}"):
                raise unknown_name("memory", name, by_name)
        if by_name[name].kind is not kind:
            raise FerruleError(f"placement.{part}: '{name}' is {by_name[name].kind}, but {kind} is needed")
    stack = by_name[wanted.stack]
    stack_bytes = DEFAULT_STACK_BYTES if wanted.stack_bytes is None else wanted.stack_bytes
    if stack_bytes > stack.size_bytes:
        by_default = " by default" if wanted.stack_bytes is None else ""
        raise FerruleError(
            f"placement.stack_bytes is {stack_bytes}{by_default}, '{stack.name}' holds {stack.size_bytes}"
        )
    if stack_bytes % 8:
        raise FerruleError(f"placement.stack_bytes is {stack_bytes}, which is not a multiple of 8")
    parts = msgspec.structs.asdict(wanted) | {"stack_bytes": stack_bytes}
    return Placement(**parts, stack_is_stated=wanted.stack_bytes is not None)


def _check_expansions(places: tuple[Memory | Peripheral | Tag, ...], description: BoardDescription, core: Cpu) -> None:
    """Raise FerruleError if a place for accelerators is occupied or malformed."""
    spans = _spans(places)
    lines = {index: name for name, index in _lines(places, core)}
    most = core_of(core.type).interrupts
    for index, each in enumerate(description.expansions):
        where, end = f"expansions[{index}]", each.address + each.size_bytes
        for key, value in (("address", each.address), ("size_bytes", each.size_bytes)):
            if value % EXPANSION_BYTES or end > _ADDRESS_END:
                raise FerruleError(
                    f"{where}: {key} is {value:#x}, expected a multiple of {EXPANSION_BYTES:#x} in 32 bits"
                )
        for begin, behind, name in spans:
            if begin < end and each.address < behind:
                raise FerruleError(f"{where}: at {each.address:#010x} is '{name}'")
        if each.interrupt in lines:
            raise FerruleError(f"{where}: interrupt {each.interrupt} is used by '{lines[each.interrupt]}'")
        if each.interrupt >= most:
            raise FerruleError(f"{where}: interrupt {each.interrupt} does not exist: a {core.type} has 0 to {most - 1}")
        spans.append((each.address, end, where))
        lines[each.interrupt] = where


def _check_setup(
    places: tuple[Peripheral | Tag, ...], peripherals: dict[str, Peripheral], description: BoardDescription
) -> None:
    """Raise FerruleError if the board lacks a register that start-up changes."""
    for index, each in enumerate(description.setup):
        where = f"setup[{index}]"
        if each.address % 4:
            raise FerruleError(f"{where}: address is {each.address:#x}, which is not a multiple of 4")
        if not any(each.address in place for place in places):
            raise FerruleError(
                f"{where}: the platform description has no peripheral or tag at {each.address:#010x}",
                hint=f'add to sysbus: Tag <{each.address & ~0x3FF:#010x}, {each.address | 0x3FF:#010x}> "name"',
            )
        if not 0 < len(each.why.strip()) <= _WHY_COLUMNS:
            raise FerruleError(f"{where}: why must be one line of text with at most {_WHY_COLUMNS} columns")
        if each.uart is not None:
            _uart(peripherals, each.uart, f"{where}.uart")


def _qemu(
    places: tuple[Memory | Peripheral, ...],
    peripherals: dict[str, Peripheral],
    description: BoardDescription,
) -> QemuMachine | None:
    machine = description.qemu
    if machine is None:
        return None
    for name in machine.serial:
        _uart(peripherals, name, "qemu.serial")
    names, used = [place.name for place in places], description.placement
    for name in machine.lacks:
        if name not in names:
            with place("qemu.lacks"):
                raise unknown_name("memory or peripheral", name, names)
        if name in (used.code, used.weights, used.data, used.workspace, used.stack):
            raise FerruleError(f"qemu.lacks: '{name}' holds parts of the firmware (placement)")
        if name in (*machine.serial, description.uarts.link):
            raise FerruleError(f"qemu.lacks: '{name}' is in qemu.serial or the link")
    return QemuMachine(
        name=machine.machine,
        instructions_per_tick=NANOSECONDS_PER_SECOND / (machine.clock_hz or description.clock_hz),
        serial=machine.serial,
        lacks=machine.lacks,
    )
