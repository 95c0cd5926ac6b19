# SPDX-License-Identifier: Apache-2.0
"""The build as data: its sources, its outputs and the commands."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from ferrule._frozen import frozen
from ferrule.backends.contribution import HEADERS
from ferrule.boards import Board
from ferrule.errors import FerruleError
from ferrule.firmware.linker import linker_script, roomy_memories
from ferrule.firmware.toolchain import THIRD_PARTY_WARNINGS, WARNINGS, Optimization, Toolchain, check_optimization
from ferrule.reading import is_file

SCRIPT_NAME = "firmware.ld"
ELF_NAME = "firmware.elf"


@frozen
class SourceSet:
    """C files and how they are compiled; paths may be relative to a project's folder."""

    sources: Sequence[str | Path] = ()
    third_party: Collection[str | Path] = ()
    """The subset of `sources` that is compiled without warnings."""
    include_dirs: Sequence[str | Path] = ()
    system_include_dirs: Sequence[str | Path] = ()
    """Include folders of third-party code, whose headers cause no warnings."""
    defines: Mapping[str, str] = field(default_factory=dict)
    """Macros defined for all C files."""


@frozen
class CompileStep:
    """The compilation of one source file into one object file."""

    source: Path
    output: Path
    dependencies: Path
    """File for the make rule that lists the files read by the compiler."""
    argv: tuple[str, ...]


@frozen
class LinkStep:
    """The linking of the object files into the firmware."""

    inputs: tuple[Path, ...]
    script: Path
    output: Path
    unfinished: Path
    """The file that the linker writes; it becomes the output when it is complete."""
    attempts: tuple[tuple[str, ...], ...]
    """Commands, tried in order until no symbols are missing; the last adds the compiler's arithmetic routines."""
    roomy_output: Path
    roomy_attempts: tuple[tuple[str, ...], ...]
    """As `attempts`, with enlarged memories, to measure a firmware that does not fit the board."""


@frozen
class BuildPlan:
    """A build that has not been started."""

    board: Board
    toolchain: Toolchain
    folder: Path
    files: Mapping[Path, str]
    """Contents of the files to write before the first command: the linker scripts."""
    compile: tuple[CompileStep, ...]
    link: LinkStep

    @property
    def elf(self) -> Path:
        """Path of the firmware."""
        return self.link.output


def plan_build(
    code: SourceSet,
    board: Board,
    toolchain: Toolchain,
    build_dir: Path,
    optimization: str = "O3",
    *,
    startup: bool = True,
    relative_to: Path | None = None,
    debug: bool = False,
) -> BuildPlan:
    """Plan the build of a firmware from its C sources.

    `startup` adds the start-up code and Ferrule's headers. Objects are named after their sources, with a number if the
    name is in use; objects with different flags are in different folders. Debug information and `__FILE__` contain
    absolute paths, except for files in `relative_to`, whose paths are relative to it, as those of `code` may be;
    `debug` adds the former.

    Raises:
        MissingToolError: the toolchain is not installed.
        FerruleError: a source does not exist, or the optimization is unknown.
    """
    level = check_optimization(optimization)
    command = toolchain.require()
    folder = build_dir.resolve()
    place = relative_to or Path()
    third_party = {place / name for name in code.third_party}
    own = board.architecture.startup
    every = [*(place / name for name in code.sources), *(own.source_paths if startup else ())]
    shipped = (*HEADERS.include_paths, *own.include_paths) if startup else ()
    flags = (
        *(f"-D{name}={value}" if value else f"-D{name}" for name, value in code.defines.items()),
        f'-DFERRULE_FLAGS="{" ".join((*toolchain.target_flags(board), f"-{level}"))}"',
        *(f"-I{(place / path).resolve()}" for path in (*code.include_dirs, *shipped)),
        *(f"-isystem{(place / path).resolve()}" for path in code.system_include_dirs),
        *(() if relative_to is None else (f"-ffile-prefix-map={relative_to.resolve()}{os.sep}=",)),
        f"-fdebug-prefix-map={folder}=.",  # the last map that matches is used
        *(("-g",) if debug else ()),
    )
    compiler_flags = toolchain.compile_flags(board, level)
    # the digest is the same for the same project in another place
    words = "\0".join((*command, *compiler_flags, *flags)).replace(str(folder.parent), "")
    objects = folder / "objects" / hashlib.sha256(words.encode()).hexdigest()[:12]
    steps = tuple(
        CompileStep(
            source=source.resolve(),
            output=output,
            dependencies=output.with_suffix(".d"),
            argv=(
                *command,
                *compiler_flags,
                *(THIRD_PARTY_WARNINGS if source in third_party else WARNINGS),
                *flags,
                *("-MD", "-MF", str(output.with_suffix(".d"))),
                *("-c", str(source.resolve()), "-o", str(output)),
            ),
        )
        for source, output in zip(every, _outputs(every, objects), strict=True)
    )
    script, roomy = folder / SCRIPT_NAME, folder / f"roomy-{SCRIPT_NAME}"
    return BuildPlan(
        board=board,
        toolchain=toolchain,
        folder=folder,
        files={script: linker_script(board), roomy: linker_script(board, memories=roomy_memories(board))},
        compile=steps,
        link=_link_step(tuple(step.output for step in steps), (script, roomy), board, toolchain, level),
    )


def _link_step(
    objects: tuple[Path, ...],
    scripts: tuple[Path, Path],
    board: Board,
    toolchain: Toolchain,
    level: Optimization,
) -> LinkStep:
    """Return the linking with the board's script, or with the one for enlarged memories, beside these scripts."""
    command, (script, roomy_script) = toolchain.require(), scripts
    folder = script.parent

    def argv(script: Path, output: Path, *, runtime: bool) -> tuple[str, ...]:
        return (
            *command,
            *toolchain.link_flags(board, level, runtime=runtime),
            "-T",
            str(script),
            *(str(path) for path in objects),
            *(toolchain.libraries if runtime else ()),
            "-o",
            str(output),
        )

    runtimes = (False, True) if toolchain.builds_runtime else (True,)
    unfinished, roomy_output = folder / f"unfinished-{ELF_NAME}", folder / f"roomy-{ELF_NAME}"
    return LinkStep(
        inputs=objects,
        script=script,
        output=folder / ELF_NAME,
        unfinished=unfinished,
        attempts=tuple(argv(script, unfinished, runtime=runtime) for runtime in runtimes),
        roomy_output=roomy_output,
        roomy_attempts=tuple(argv(roomy_script, roomy_output, runtime=runtime) for runtime in runtimes),
    )


def _outputs(sources: Sequence[Path], folder: Path) -> list[Path]:
    seen: Counter[str] = Counter()
    outputs = []
    for source in sources:
        if not is_file(source):
            raise FerruleError(f"there is no source {source}")
        count = seen[source.stem]
        seen[source.stem] += 1
        outputs.append(folder / (f"{source.stem}.o" if not count else f"{source.stem}~{count}.o"))
    return outputs
