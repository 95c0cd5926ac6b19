# SPDX-License-Identifier: Apache-2.0
"""Tries a shared object in a separate process; runs as a script and imports `abi` alone of Ferrule.

Arguments: the file, and a file descriptor. The script writes one line of JSON per step to the descriptor: `{"step":
name}` before a step, and `{"refused": code, "message": text}` or `{"done": true, ...}` at the end. If the shared object
crashes the process, the last step tells where. The script makes the calls that a host makes before it offers any layer:
it lists the capabilities, and creates a context and profiling.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import struct
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

sys.path.append(os.path.dirname(__file__))  # noqa: PTH120 (no pathlib here)
abi: Any = import_module("abi")

ENTRY_POINTS = ("GetBackendId", "GetVersion", "BackendFactory")

MACHINES = {3: "x86", 8: "MIPS", 21: "PowerPC", 40: "ARM", 62: "x86-64", 183: "AArch64", 243: "RISC-V"}
"""The processors by their numbers in ELF files."""

LONGEST_LIFE_S = 600
"""Limit after which the process ends itself, in case the host is gone."""


class RefusedError(Exception):
    """The shared object is not a valid backend; the arguments are a reason code and a sentence."""


def main() -> None:
    """Try the file, and report the result."""
    path, descriptor = sys.argv[1], int(sys.argv[2])
    forbid_core_dumps()
    if hasattr(signal, "alarm"):
        signal.alarm(LONGEST_LIFE_S)

    def tell(**line: object) -> None:
        os.write(descriptor, json.dumps(line).encode() + b"\n")

    try:
        try_file(path, tell)
    except RefusedError as refusal:
        tell(refused=refusal.args[0], message=refusal.args[1])


def forbid_core_dumps() -> None:
    """Disable core dumps, because a crash is expected here."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def try_file(path: str, tell: Callable[..., None]) -> None:
    """Perform each step of a host before its first layer support query."""
    tell(step="reading it")
    check_length(path)

    tell(step="loading it")
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise RefusedError("not-loadable", str(error)) from None
    for name in ENTRY_POINTS:
        if not hasattr(library, name):
            raise RefusedError("missing-symbol", f"undefined symbol: {name}")

    tell(step="GetBackendId")
    library.GetBackendId.restype = ctypes.c_char_p
    tell(id=read_id(library.GetBackendId()))

    tell(step="GetVersion")
    major, minor = ctypes.c_uint32(0xFFFFFFFF), ctypes.c_uint32(0xFFFFFFFF)
    library.GetVersion.restype = None
    library.GetVersion(ctypes.byref(major), ctypes.byref(minor))
    check_version((major.value, minor.value), abi.API_VERSION)

    tell(step="BackendFactory")
    library.BackendFactory.restype = ctypes.c_void_p
    address = library.BackendFactory()
    if not address:
        raise RefusedError("null-factory", "BackendFactory returns null")

    tell(step="reading its tables")
    check_backend(address, (major.value, minor.value))

    try_calls(address, tell)

    tell(step="unloading it")
    import _ctypes

    _ctypes.dlclose(library._handle)  # noqa: SLF001 (ctypes has no other way to the handle)
    tell(done=True)


def check_length(path: str) -> None:
    """Refuse a truncated 64-bit ELF file: the dynamic linker would map beyond its end."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 (no pathlib here)
            head = file.read(64)
            check_machine(head)
            size = os.fstat(file.fileno()).st_size
            if len(head) < 64 or head[:5] != b"\x7fELF\x02" or head[5:6] != native_order():
                return  # the dynamic linker reports the error
            program_offset, section_offset = struct.unpack_from("=QQ", head, 32)
            program_bytes, programs, section_bytes, sections = struct.unpack_from("=HHHH", head, 54)
            file.seek(program_offset)
            table = file.read(program_bytes * programs)
    except OSError as error:
        raise RefusedError("not-loadable", str(error)) from None
    needed = max(program_offset + program_bytes * programs, section_offset + section_bytes * sections)
    for start in range(0, len(table) - 39, program_bytes or len(table) + 1):
        offset, _, _, in_file = struct.unpack_from("=QQQQ", table, start + 8)
        needed = max(needed, offset + in_file)
    if size < needed:
        raise RefusedError("not-loadable", f"the file is truncated: it has {size} bytes, its header requires {needed}")


def check_machine(head: bytes) -> None:
    """Refuse an ELF file for another processor: the dynamic linker may report that it does not exist."""
    try:
        with open("/proc/self/exe", "rb") as file:  # noqa: PTH123 (no pathlib here)
            own = machine_of(file.read(64))
    except OSError:
        return
    found = machine_of(head)
    if own and found and own != found:
        raise RefusedError("not-loadable", f"the file is built for {found}, this Python runs on {own}")


def machine_of(head: bytes) -> str:
    """Return the processor for which an ELF file is built; "" if it is no ELF file."""
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return ""
    number = int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")
    return f"{MACHINES.get(number, f'the ELF machine {number}')} ({32 if head[4] == 1 else 64}-bit)"


def native_order() -> bytes:
    """Return the ELF code of this machine's byte order."""
    return b"\x01" if sys.byteorder == "little" else b"\x02"


def read_id(found: bytes | None) -> str:
    """Return the id; RefusedError if it is null, empty, "Unknown" or not text."""
    if found is None:
        raise RefusedError("invalid-id", "GetBackendId returns null")
    try:
        text = found.decode()
    except UnicodeDecodeError:
        raise RefusedError("invalid-id", "the id is not UTF-8") from None
    if text in {"", "Unknown"} or not text.isprintable():
        raise RefusedError("invalid-id", f"invalid backend id: {text!r}")
    return text


def check_version(found: tuple[int, int], api: tuple[int, int]) -> None:
    """Refuse a different major or a newer minor version."""
    if found == (0xFFFFFFFF, 0xFFFFFFFF):
        raise RefusedError("incompatible-version", "GetVersion sets no version")
    if found[0] != api[0] or found[1] > api[1]:
        raise RefusedError(
            "incompatible-version",
            f"the backend's version [{found[0]}.{found[1]}] is not compatible with the current Backend API "
            f"(version [{api[0]}.{api[1]}])",
        )


def check_backend(address: int, version: tuple[int, int]) -> None:
    """Refuse a backend whose tables are too small, lack a function, or point to something other than code."""
    code = executable_ranges()
    minor = version[1]
    check_table("backend", address, abi.Backend, code, minor)
    backend = abi.read_table(abi.Backend, address)
    declared = (backend.api_major, backend.api_minor)
    if declared != version:
        raise RefusedError(
            "invalid-table",
            f"the backend table declares version {declared[0]}.{declared[1]}, GetVersion {version[0]}.{version[1]}",
        )
    for name, kind in abi.TABLES.items():
        pointer = getattr(backend, name)
        if pointer:
            check_table(name, ctypes.addressof(pointer.contents), kind, code, minor)
            if name == "handles":
                check_factories(pointer.contents, code, minor)
        elif name == "layer_support":
            raise RefusedError("invalid-table", f"the table '{name}' is null")


def check_factories(handles: Any, code: list[tuple[int, int]], minor: int) -> None:  # noqa: ANN401 - a struct of the header
    """Check the table of each handle factory."""
    count = handles.factory_count
    if not 1 <= count <= 64 or not handles.factories:
        raise RefusedError("invalid-table", f"the table 'handles' has {count} factories, expected 1 to 64")
    for index, pointer in enumerate(handles.factories[:count]):
        if not pointer:
            raise RefusedError("invalid-table", f"handle factory {index} is null")
        address = ctypes.addressof(pointer.contents)
        check_table(f"handle factory {index}", address, abi.HandleFactory, code, minor)
        factory = abi.read_table(abi.HandleFactory, address)
        for function in ("map", "unmap") if factory.supports_map else ():
            if not getattr(factory, function):
                raise RefusedError(
                    "invalid-table", f"handle factory {index} supports map, and its function '{function}' is null"
                )
        if not factory.id:
            raise RefusedError("invalid-table", f"handle factory {index} has no id")


def try_calls(address: int, tell: Callable[..., None]) -> None:
    """Call the functions that a new runtime calls on each backend."""
    backend = abi.read_table(abi.Backend, address)
    if backend.capabilities:
        tell(step="listing its capabilities")
        check_capabilities(address, backend.capabilities.contents)
    for name in ("contexts", "profiling"):
        if getattr(backend, name):
            tell(step=f"creating and destroying an object of the table '{name}'")
            try_making(address, getattr(backend, name).contents)


def check_capabilities(backend: int, table: Any) -> None:  # noqa: ANN401 - a struct of the header
    """Refuse a list with unnamed entries, or far too many entries."""
    count = ctypes.c_uint32()
    options = table.list(backend, count)
    if count.value > 1024 or (count.value and not options):
        where = ctypes.cast(options, ctypes.c_void_p).value or 0
        raise RefusedError("invalid-table", f"there are {count.value} capabilities at {where:#x}")
    for index in range(count.value):
        if not options[index].name:
            raise RefusedError("invalid-table", f"capability {index} has no name")


def try_making(backend: int, table: Any) -> None:  # noqa: ANN401 - a struct of the header
    """Create an object without options and destroy it; a backend that cannot create it here is not refused."""
    reason, made = ctypes.create_string_buffer(512), ctypes.c_void_p()
    if table.create(backend, abi.CreationOptions(), made, reason, len(reason)) == 0:
        table.destroy(made)


def check_table(name: str, address: int, kind: Any, code: list[tuple[int, int]], minor: int) -> None:  # noqa: ANN401 - a class of the header
    """Check a table's size, which is that of the backend's minor version or of a newer one, and its functions."""
    pointer_bytes = ctypes.sizeof(ctypes.c_void_p)
    if address % pointer_bytes:
        raise RefusedError("invalid-table", f"the table '{name}' is at {address:#x}, which is not aligned")
    size, sizes = ctypes.c_size_t.from_address(address).value, abi.sizes(kind)[minor:]
    if size not in sizes:
        expected = " or ".join(map(str, dict.fromkeys(sizes)))
        raise RefusedError("invalid-table", f"the table '{name}' declares {size} bytes, expected {expected}")
    for function, row in kind.functions.items():
        offset = getattr(kind, function).offset
        if offset >= size:
            continue  # a later version added it
        pointer = ctypes.c_void_p.from_address(address + offset).value
        if not pointer and not row.optional:
            raise RefusedError("invalid-table", f"the function '{function}' of the table '{name}' is null")
        if pointer and code and not any(first <= pointer < end for first, end in code):
            raise RefusedError(
                "invalid-table",
                f"the function '{function}' of the table '{name}' is at {pointer:#x}, which is not code",
            )


def executable_ranges() -> list[tuple[int, int]]:
    """Return the address ranges of code in this process; empty if the system does not provide them."""
    try:
        with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:  # noqa: PTH123 (no pathlib here)
            rows = [line.split(maxsplit=2) for line in maps]
    except OSError:
        return []
    spans = (row[0].split("-") for row in rows if "x" in row[1])
    return [(int(first, 16), int(end, 16)) for first, end in spans]


if __name__ == "__main__":
    main()
