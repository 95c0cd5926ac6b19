# SPDX-License-Identifier: Apache-2.0
"""The C files of a project: the model's own and the contributions that it is linked with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from ferrule._frozen import frozen
from ferrule._version import VERSION
from ferrule.backends.contribution import LINK, Contribution, Warnings, defines_of, merged
from ferrule.codegen import Program
from ferrule.firmware.plan import SourceSet
from ferrule.firmware.platforms.platform import LIBRARY_FOLDER, MODEL_FOLDER, SEAL, ProjectRequest
from ferrule.firmware.toolchain import THIRD_PARTY_WARNINGS
from ferrule.reading import read_bytes


def model_files(program: Program, folder: str = MODEL_FOLDER) -> dict[str, bytes]:
    """Return the generated files of all models by path in the project."""
    return {f"{folder}/{name}": text.encode() for name, text in program.files.items()}


def model_sources(program: Program, folder: str = MODEL_FOLDER) -> tuple[str, ...]:
    """Return the paths of the sources of all models in the project, sorted."""
    return tuple(f"{folder}/{name}" for name in program.sources)


def link_of(program: Program, *, further: bool = False) -> Contribution:
    """Return the link that serves a program: with those of its optional parts that it needs.

    `further` says that the firmware has a model besides those of the program.
    """
    needed = {
        "FERRULE_LINK_MODELS": program.single is None or further,
        "FERRULE_LINK_STATE": program.has_state,
        "FERRULE_LINK_STATISTICS": program.has_statistics,
    }
    defines = {name: "1" for name, is_needed in needed.items() if is_needed}
    return replace(LINK, defines=defines) if defines else LINK


def devices_header(program: Program) -> str:
    """Return the name of the header that declares the devices of all models."""
    return f"ferrule_{program.symbol}_devices.h"


POWER = "devices_power.h"
"""The power and clock code of a project's user for its devices, which the file that binds them includes."""
LOCK = "arena_lock.c"
"""The lock of an arena that the models share, in a project that has one."""


def shared_values(request: ProjectRequest) -> dict[str, object]:
    """Return the values that the templates of all platforms have."""
    program = request.program
    links = [f"ferrule_{artifact.symbol}_link.h" for artifact in program.artifacts]
    return {
        "version": VERSION,
        "program": program,
        "main_headers": sorted([*links, *((devices_header(program),) if program.devices else ())]),
        "board": request.board,
        "optimization": request.optimization,
        "third_party_warnings": THIRD_PARTY_WARNINGS,
        "seal": SEAL if request.self_test else "",
    }


@frozen
class Library:
    """The contributions in a project; all paths are relative to the project."""

    contributions: tuple[Contribution, ...]

    @classmethod
    def of(cls, *contributions: Contribution) -> Library:
        """Return the library of some contributions; parts of the same contribution are merged.

        Raises:
            FerruleError: two contributions contradict each other.
        """
        return cls(contributions=merged(contributions))

    def code(self, sources: Iterable[str] = (), *include_dirs: str, first: Sequence[str] = ()) -> SourceSet:
        """Return the library's C files and a project's own: `first` in front, and all others sorted."""
        own, others = (
            [part for part in self.contributions if part.warnings is kind]
            for kind in (Warnings.OWN, Warnings.THIRD_PARTY)
        )
        return SourceSet(
            sources=(*first, *sorted((*self.sources, *sources))),
            third_party=tuple(sorted(_in_project(part, name) for part in others for name in part.sources)),
            include_dirs=(*include_dirs, *_include_dirs(own)),
            system_include_dirs=_include_dirs(others),
            defines=defines_of(self.contributions),
        )

    @property
    def files(self) -> dict[str, bytes]:
        """The contents of all files by path; FerruleError if a file does not exist."""
        return {
            _in_project(part, name): read_bytes(part.folder / name)
            for part in self.contributions
            for name in part.files
        }

    @property
    def sources(self) -> tuple[str, ...]:
        """All C files, sorted."""
        return tuple(sorted(_in_project(part, name) for part in self.contributions for name in part.sources))


def _include_dirs(parts: Iterable[Contribution]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_in_project(part, name) for part in parts for name in part.include_dirs))


def _in_project(part: Contribution, name: str) -> str:
    return str(PurePosixPath(LIBRARY_FOLDER, part.name, name))
