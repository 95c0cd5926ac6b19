# SPDX-License-Identifier: Apache-2.0
"""Contributions: the only way for C sources and headers into a firmware, and the C that Ferrule itself ships."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path, PurePosixPath

from ferrule._frozen import frozen
from ferrule.backends.conforming import IDENTIFIER
from ferrule.errors import FerruleError, unknown_name
from ferrule.reading import files_below, is_file, is_folder, list_folder, read_bytes
from ferrule.resources import root

_LICENCE = re.compile(r"[\w.+:() -]+", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_./+@=-]*")
_VALUE = re.compile(r"[\w.+-]*", re.ASCII)


class Warnings(StrEnum):
    """How strictly a contribution's C is compiled."""

    OWN = "own"
    """With the warnings of Ferrule's own C, and every warning is an error."""
    THIRD_PARTY = "third-party"
    """Without warnings; its headers are system headers, so that they cause no warnings in sources that include them."""


@frozen
class Contribution:
    """C sources and header folders that a firmware is built with.

    Raises:
        FerruleError: the name leads out of the project's library, the licence is not an SPDX expression, or a macro or
            a path is one that some build tool would not pass on unchanged.
    """

    name: str
    """The name in lists and the folder of its files below `lib` in a project, such as backends/my_npu."""
    folder: Path
    """The folder that holds the files."""
    sources: tuple[str, ...] = ()
    """C files, relative to the folder. Headers in the same folders as these files belong to the contribution, too."""
    include_dirs: tuple[str, ...] = ()
    """Include folders, relative to the folder; all headers below them belong to the contribution."""
    defines: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Macro values by name; an empty string defines a macro without a value. The macros apply to every C file of the
    firmware, since headers may depend on them."""
    warnings: Warnings = Warnings.OWN
    licence: str = "NOASSERTION"
    """An SPDX expression, such as "BSD-3-Clause"; NOASSERTION if the licence is unknown."""

    def __post_init__(self) -> None:
        place = PurePosixPath(self.name)
        if place.is_absolute() or ".." in place.parts or not place.parts:
            raise FerruleError(f"contribution '{self.name}' must be named like a folder below the project's library")
        for path in (self.name, *self.sources, *self.include_dirs):
            if not _PATH.fullmatch(path):
                raise FerruleError(
                    f"contribution '{self.name}' has the path {path!a}, expected letters, digits and '_./+@=-'",
                    hint="other paths do not get through every build tool: rename the file or folder",
                )
        if not _LICENCE.fullmatch(self.licence):
            raise FerruleError(
                f"contribution '{self.name}': licence '{self.licence}' is no SPDX expression",
                hint='give an identifier of spdx.org/licenses, such as "BSD-3-Clause"',
            )
        for macro, value in self.defines.items():
            if not (IDENTIFIER.holds(macro) and _VALUE.fullmatch(value)):
                raise FerruleError(
                    f"contribution '{self.name}' defines {macro} as '{value}', expected a C identifier, and a value "
                    "of letters, digits and '_.+-'",
                    hint="other values do not get through every build tool: define them in a header",
                )

    def part(self, *names: str) -> Contribution:
        """Return the contribution reduced to the named sources; without names, to its headers.

        A source is named by its file name without the suffix, such as conv2d_s8.

        Raises:
            FerruleError: there is no source of that name.
        """
        return replace(self, sources=tuple(dict.fromkeys(source for name in names for source in self._named(name))))

    def without(self, *names: str) -> Contribution:
        """Return the contribution without the named sources; names are as in `part`."""
        left_out = {source for name in names for source in self._named(name)}
        return replace(self, sources=tuple(source for source in self.sources if source not in left_out))

    @property
    def files(self) -> tuple[str, ...]:
        """All files that are copied into a project, relative to the folder, sorted.

        Raises:
            FerruleError: a source or an include folder does not exist.
        """
        for wrong in self.missing():
            raise FerruleError(wrong)
        found = set(self.source_paths)
        for folder in dict.fromkeys(path.parent for path in self.source_paths):
            found |= set(list_folder(folder, "*.h"))
        for path in self.include_paths:
            found |= set(files_below(path, "*.h"))
        return tuple(sorted(path.relative_to(self.folder).as_posix() for path in found))

    def missing(self) -> Iterator[str]:
        """Yield a sentence about each source and include folder that does not exist."""
        for paths, is_there, what in (
            (self.source_paths, is_file, "source"),
            (self.include_paths, is_folder, "include folder"),
        ):
            for path in paths:
                if not is_there(path):
                    yield f"contribution '{self.name}': there is no {what} {path}"

    @property
    def hashes(self) -> dict[str, str]:
        """The SHA-256, in hexadecimal, of the contents of each of `files`, which are read."""
        return {name: hashlib.sha256(read_bytes(self.folder / name)).hexdigest() for name in self.files}

    @property
    def digest(self) -> str:
        """The SHA-256, in hexadecimal, of the names and contents of all files and of the macros."""
        return self.digest_by(self.hashes)

    def digest_by(self, hashes: Mapping[str, str]) -> str:
        """Return the digest for `hashes` that are known already."""
        sha = hashlib.sha256(repr(sorted(self.defines.items())).encode())
        for name, value in hashes.items():
            sha.update(f"{name}\0{value}\n".encode())
        return sha.hexdigest()

    @property
    def source_paths(self) -> tuple[Path, ...]:
        """The paths of the C files."""
        return tuple(self.folder / source for source in self.sources)

    @property
    def include_paths(self) -> tuple[Path, ...]:
        """The paths of the include folders."""
        return tuple(self.folder / include for include in self.include_dirs)

    def _named(self, name: str) -> tuple[str, ...]:
        by_stem = _by_stem(self.sources)
        if name not in by_stem:
            raise unknown_name("source", name, by_stem, where=f"in contribution '{self.name}'")
        return by_stem[name]


@cache
def _by_stem(sources: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return the sources by file name without suffix; every layer that is lowered looks up its kernels here."""
    found: dict[str, tuple[str, ...]] = {}
    for source in sources:
        stem = PurePosixPath(source).stem
        found[stem] = (*found.get(stem, ()), source)
    return found


def merged(contributions: Iterable[Contribution]) -> tuple[Contribution, ...]:
    """Return the contributions sorted by name; parts of the same contribution are merged.

    Raises:
        FerruleError: two contributions have the same name and different folders, one file comes with two kinds of
            warnings or licences, or two macros of the same name have different values.
    """
    given = tuple(contributions)
    folders: dict[str, Path] = {}
    by_identity: dict[tuple[str, Warnings, str], list[Contribution]] = {}
    for each in given:
        if folders.setdefault(each.name, each.folder) != each.folder:
            raise FerruleError(
                f"two contributions are called '{each.name}' ({folders[each.name]}, {each.folder}), "
                "expected different names"
            )
        by_identity.setdefault((each.name, each.warnings, each.licence), []).append(each)
    found = tuple(_together(by_identity[key]) for key in sorted(by_identity))
    _check_sources(found)
    defines_of(found)
    return found


def defines_of(contributions: Iterable[Contribution]) -> dict[str, str]:
    """Return all macros, sorted by name; FerruleError if two of the same name have different values."""
    owners: dict[str, Contribution] = {}
    for each in contributions:
        for macro, value in each.defines.items():
            owner = owners.setdefault(macro, each)
            if owner.defines[macro] != value:
                raise FerruleError(
                    f"contributions '{owner.name}' and '{each.name}' define {macro} differently: "
                    f"'{owner.defines[macro]}' and '{value}'"
                )
    return {macro: owners[macro].defines[macro] for macro in sorted(owners)}


def _together(parts: list[Contribution]) -> Contribution:
    return replace(
        parts[0],
        sources=tuple(sorted({source for part in parts for source in part.sources})),
        include_dirs=tuple(sorted({include for part in parts for include in part.include_dirs})),
        defines=defines_of(parts),
    )


def _check_sources(contributions: tuple[Contribution, ...]) -> None:
    owners: dict[Path, Contribution] = {}
    for each in contributions:
        for path in each.source_paths:
            if owners.setdefault(path, each) is not each:
                raise FerruleError(
                    f"source {path} is contributed twice: {owners[path].warnings} under {owners[path].licence}, "
                    f"and {each.warnings} under {each.licence}"
                )


def shipped(name: str, *include_dirs: str, folder: Path | None = None) -> Contribution:
    """Return all sources of a folder of C that Ferrule ships, which is `name` at the root unless `folder` is given."""
    folder = folder or root() / name
    return Contribution(
        name=name,
        folder=folder,
        sources=tuple(sorted(path.relative_to(folder).as_posix() for path in files_below(folder, "*.c"))),
        include_dirs=include_dirs,
        licence="Apache-2.0",
    )


HEADERS = shipped("include", ".")
"""The public headers, which the generated C includes."""
KERNELS = shipped("src_c/kernels", "include")
"""The kernels, one source file each: `KERNELS.part("conv2d_s8")`."""
DEVICE = shipped("src_c/device")
"""The device API, which every model with devices is linked with; it needs a platform's adapter."""
RUNTIME = shipped("src_c/runtime")
"""The cycle counter and the stack watch."""
LINK = shipped("src_c/link")
"""The serial protocol between host and firmware."""
MLPERF_TINY = shipped("src_c/mlperf_tiny")
"""The device's side of MLPerf Tiny's serial protocol."""


SELF_TEST = (
    replace(shipped("src_c/self_test", "include"), defines={"FERRULE_WITH_SELF_TEST": "1"}),
    LINK.part("crc32"),
)
"""The comparison of code, constants and weights with the CRC-32 of each that `firmware/seal.py` records."""
UART_DRIVERS = shipped("src_c/drivers")
"""Polling UART drivers, and the transport over a UART."""
BARE_METAL = shipped("platforms/bare_metal", "include")
"""The adapter of the device API for a core without an operating system."""
CMSIS = shipped("platforms/cmsis", "include", "drivers")
"""The adapter of the device API, the link and the UARTs for CMSIS."""
FREERTOS = shipped("platforms/freertos", "include", "src")
"""The adapter of the device API for FreeRTOS, and its clock for the cycle counter."""
THREADX = shipped("platforms/threadx", "include")
"""The adapter of the device API for ThreadX, and its clock for the cycle counter."""
