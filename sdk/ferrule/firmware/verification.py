# SPDX-License-Identifier: Apache-2.0
"""Verifies a firmware: its digests, and what they cannot show, the bytes of its constant tables and of its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import count
from pathlib import Path

from ferrule._frozen import frozen, positional
from ferrule.boards import Board
from ferrule.codegen import Artifact, Program
from ferrule.errors import FerruleError, MissingToolError, some_of
from ferrule.firmware.identification import project_files, read_identities, read_identity
from ferrule.firmware.image import Image, Section
from ferrule.firmware.job import Job
from ferrule.firmware.linker import reserving
from ferrule.firmware.manifest import read_manifest
from ferrule.firmware.placement import emit_program
from ferrule.firmware.platforms import platform
from ferrule.firmware.project import StackTooSmallError, build_project, write_project
from ferrule.firmware.seal import RECORD_SYMBOL, SealError, damaged
from ferrule.firmware.toolchain import OPTIMIZATIONS, ZigToolchain, check_optimization, gcc_for
from ferrule.interface import option, spelled
from ferrule.link import BuildInfo
from ferrule.network import Network
from ferrule.progress import Progress, say_nothing
from ferrule.reading import is_file, read_bytes
from ferrule.scratch import ScratchFolder, write_file

DIGESTS = ("model", "plan", "sources")
"""The digests of an identity, by which a firmware is verified."""
_LISTED = 5


class State(StrEnum):
    """The result of one check."""

    EQUAL = "equal"
    DIFFERENT = "DIFFERENT"
    NOT_RECORDED = "not recorded"
    """The firmware has no self-test."""
    NOT_CHECKED = "not checked"
    """Nothing was compared, which is no success."""


@positional
class Check:
    """What was compared, and the result."""

    name: str
    state: State
    text: str = ""
    """How much was compared, where it differs, or why nothing was compared."""


@frozen
class Verification:
    """The digests of a model in a firmware and its constant tables, compared with those expected."""

    found: BuildInfo
    expected: Mapping[str, str]
    """The expected digests: of `model`, `plan` and `sources`."""
    tables: Check

    @property
    def different(self) -> tuple[str, ...]:
        """The names of what differs."""
        names = [name for name, value in self.expected.items() if getattr(self.found, name) != value]
        return (*names, *((self.tables.name,) if self.tables.state is State.DIFFERENT else ()))


@frozen
class FirmwareVerification:
    """All results for a firmware."""

    models: tuple[Verification, ...]
    checks: tuple[Check, ...]
    """Of the whole firmware: all that is loaded onto the board, compared with a build by the stated compiler."""
    needed: bool = True
    """Whether a check of the code was asked for."""

    @property
    def state(self) -> State:
        """DIFFERENT if anything differs, otherwise NOT_CHECKED if something was to be checked and was not."""
        states = {check.state for check in self.checks}
        if any(model.different for model in self.models) or State.DIFFERENT in states:
            return State.DIFFERENT
        return State.NOT_CHECKED if self.needed and State.NOT_CHECKED in states else State.EQUAL


def verify(
    image: Image,
    networks: Sequence[Network],
    job: Job,
    *,
    project: Path | None = None,
    code: bool = True,
    progress: Progress = say_nothing,
) -> FirmwareVerification:
    """Compare a firmware with the project that the job generates now from the networks.

    `project` is the folder whose files for editing, such as main.c, were built instead of those generated. Without
    `code`, the code is not checked.

    Raises:
        FerruleError: the firmware has no identity, the job cannot generate a project from the networks, or `project`
            has none.
    """
    found = [read_identity(image, network) for network in networks]
    job = replace(job, self_test=job.self_test or image.has(RECORD_SYMBOL))
    program = emit_program(networks, job)
    identities, _ = project_files(program, job)
    models = tuple(
        Verification(
            found=each,
            expected={name: getattr(expected, name) for name in DIGESTS},
            tables=Check("tables", *compare_tables(image, artifact)),
        )
        for each, expected, artifact in zip(found, identities, program.artifacts, strict=True)
    )
    result = _code(image, program, job, found[0], project, progress) if code else (State.NOT_CHECKED, "as asked")
    checks = Check("code", *result), Check("selftest", *_self_test(image))
    return FirmwareVerification(models=models, checks=checks, needed=code)


def _self_test(image: Image) -> tuple[State, str]:
    """Compare what the self-test compares on the board with what is recorded in the file."""
    if not image.has(RECORD_SYMBOL):
        return State.NOT_RECORDED, spelled(f"the firmware was generated without {option('self_test')}")
    try:
        wrong = damaged(read_bytes(image.path))
    except (SealError, OSError) as error:
        return State.NOT_CHECKED, str(error)
    if wrong is None:
        return State.NOT_CHECKED, "not recorded: run python3 seal.py on the ELF file"
    if wrong:
        return State.DIFFERENT, f"damaged: {', '.join(wrong)}"
    return State.EQUAL, "the CRC-32 of code, constants and weights, as recorded"


def compare_tables(image: Image, artifact: Artifact) -> tuple[State, str]:
    """Compare each constant table with the bytes at its symbol; return the result in words."""
    sources = {Path(name).name for name in artifact.files}
    wrong, absent, size = [], 0, 0
    for name, expected in artifact.tables.items():
        places = [
            symbol
            for symbol in image.symbols
            if symbol.name == name and not symbol.is_function and (not symbol.source or symbol.source in sources)
        ]
        contents = [image.read(symbol.address, symbol.size_bytes) for symbol in places]
        if not places:
            absent += 1
        elif expected in contents:
            size += len(expected)
        else:
            wrong.append(f"{name}{_first(contents[0], expected)}")
    compared = len(artifact.tables) - absent
    lost = f", {absent} have no symbol" if absent else ""
    if wrong:
        return State.DIFFERENT, f"{len(wrong)} of {len(artifact.tables)} tables: {some_of(wrong, _LISTED)}{lost}"
    if not compared:
        what = "firmware has no symbols of tables" if artifact.tables else "model has no constant tables"
        return State.NOT_CHECKED, f"the {what}"
    return State.EQUAL, f"{compared} tables, {size:,} B{lost}"


def _first(found: bytes, expected: bytes) -> str:
    """Return where two tables begin to differ, in words."""
    if len(found) != len(expected):
        return f" ({len(found):,} B, expected {len(expected):,} B)"
    at = next(index for index in count() if found[index] != expected[index])
    return f" at byte {at:,} (0x{found[at]:02x}, expected 0x{expected[at]:02x})"


def _code(
    image: Image, program: Program, job: Job, stated: BuildInfo, folder: Path | None, progress: Progress
) -> tuple[State, str]:
    """Compare the code with that of a project built now."""
    if platform(job.platform).tools is not None:
        return State.NOT_CHECKED, f"the tools of {job.platform} build it"
    # zig's compiler states itself as Clang; another one is refused below, since no build here states the same
    name = gcc_for(job.load_board().architecture).name if stated.compiler.startswith("GCC") else ZigToolchain().name
    levels = [flag.removeprefix("-") for flag in stated.flags.split() if flag.removeprefix("-") in OPTIMIZATIONS]
    if not levels:
        return State.NOT_CHECKED, "the firmware does not state the flags of its build"
    board = job.load_board()
    stack = _stack_bytes(image, board)
    with ScratchFolder() as scratch:
        wanted = replace(
            job,
            out=scratch.path / "project",
            toolchain=name,
            optimization=check_optimization(levels[-1]),
            board=board if stack is None else reserving(board, stack),
        )
        try:
            project = write_project(program, wanted)
            if folder is not None:
                for starter in read_manifest(folder).starters:  # which users may edit
                    if is_file(folder / starter):
                        write_file(project.folder / starter, read_bytes(folder / starter, within=folder))
            built = build_project(project, progress=progress)
        except MissingToolError as error:
            return State.NOT_CHECKED, f"{error} ({error.hint})"
        except StackTooSmallError as error:
            return State.DIFFERENT, str(error)
        except FerruleError as error:
            return State.NOT_CHECKED, f"the build fails: {str(error).splitlines()[0]}"
        compilers = {each.compiler for each in read_identities(built)}
        if stated.compiler not in compilers:
            return State.NOT_CHECKED, f"it was built by {stated.compiler or '?'}, here is {', '.join(compilers)}"
        return compare_images(image, built)


def _stack_bytes(image: Image, board: Board) -> int | None:
    """Return the size of the stack, which a build derives and no digest covers; None if the board's own applies."""
    names = ("ferrule_stack_limit", "ferrule_stack_top")
    if board.placement.stack_is_stated or not all(map(image.has, names)):
        return None
    limit, top = map(image.address_of, names)
    return top - limit if 0 < top - limit <= board.memory(board.placement.stack).size_bytes else None


def compare_images(image: Image, built: Image) -> tuple[State, str]:
    """Compare all that is loaded onto the board, section by section, with a new build; return the result in words."""
    wrong = _differences(image, built)
    if wrong:
        return State.DIFFERENT, "; ".join(wrong)
    size = sum(len(segment.data) for segment in built.segments)
    return State.EQUAL, f"{size:,} B in {len(built.segments)} segments, with all constants"


def _differences(image: Image, built: Image) -> list[str]:
    """Return which sections differ and where; "outside of all sections" if nothing else does."""
    mine, its = ({section.name: section for section in each.sections} for each in (image, built))
    texts = {name: _section(image, built, mine.get(name), its.get(name)) for name in its | mine}
    found = [f"{name} {text}" for name, text in texts.items() if text]
    if image.entry != built.entry:
        found.append(f"the entry is 0x{image.entry:08x}, expected 0x{built.entry:08x}")
    if not found and image.segments != built.segments:
        found.append("bytes outside of all sections")
    return found


def _section(image: Image, built: Image, mine: Section | None, its: Section | None) -> str:
    if mine is None or its is None:
        return "is not in the firmware" if mine is None else "is not expected"
    if (mine.address, mine.load_address, mine.size_bytes) != (its.address, its.load_address, its.size_bytes):
        return (
            f"has {mine.size_bytes:,} B at 0x{mine.address:08x}, expected {its.size_bytes:,} B at 0x{its.address:08x}"
        )
    found, expected = (each.read(its.load_address, its.size_bytes) for each in (image, built))
    if found == expected:
        return ""
    if len(found) != len(expected):
        return f"has contents of {len(found):,} B, expected {len(expected):,} B"
    places = [at for at in range(len(found)) if found[at] != expected[at]]
    address = its.address + places[0]
    symbol = built.symbol_at(address)
    inside = "" if symbol is None else f" ({symbol.name}+0x{address - symbol.address:x})"
    return f"in {len(places):,} B, first at 0x{address:08x}{inside}"
