# SPDX-License-Identifier: Apache-2.0
"""Kills an action at each of its calls that change files, lets it happen again, and compares the result.

Run as a program, in a process with the library of killer.c preloaded: `killing.py FOLDER LIBRARY STRIDE`. It prints
the number of calls of each action. A fork performs the action, so that each trial starts with what is imported already.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from ferrule.boards import load_board
from ferrule.firmware import execute, toolchain
from ferrule.firmware.folder import write_folder
from ferrule.firmware.manifest import Manifest
from ferrule.firmware.plan import BuildPlan, CompileStep, LinkStep
from ferrule.scratch import PREFIX, sweep, write_file

Tree = dict[str, bytes | None]


def tree(folder: Path) -> Tree:
    """Return the contents of all files in a folder, and None for each folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def swept(folder: Path) -> Tree:
    """Return the contents of a folder without leftovers of killed processes, which a sweep must be able to delete."""
    for path in (folder, *folder.rglob("*")):
        sweep(path)
    found = tree(folder)
    assert not [name for name in found if PREFIX in name], "leftovers in use"
    return {name: data for name, data in found.items() if Path(name).name != "scratch"}


def prepare_build(folder: Path) -> None:
    """Write the sources of a firmware, and an older firmware."""
    (folder / "project" / "build").mkdir(parents=True)
    (folder / "project" / "build" / "firmware.elf").write_bytes(b"old")
    for name in ("one", "two"):
        source = folder / "project" / f"{name}.c"
        source.write_text(f"source {name}\n", encoding="utf-8")
        os.utime(source, (1_000_000, 1_000_000))


def build(folder: Path) -> None:
    """Build the firmware with a shell that copies as its compiler and linker."""
    shell = shutil.which("sh")
    assert shell is not None
    place, out = folder / "project", folder / "project" / "build"

    def compiled(name: str) -> CompileStep:
        source, target, rule = place / f"{name}.c", out / "objects" / f"{name}.o", out / "objects" / f"{name}.d"
        script = f"cp {source} {target}; echo {target}: {source} >{rule}"
        return CompileStep(source=source, output=target, dependencies=rule, argv=(shell, "-c", script))

    steps = tuple(compiled(name) for name in ("one", "two"))
    objects, unfinished = tuple(step.output for step in steps), out / "unfinished"
    plan = BuildPlan(
        board=load_board("mps2-an386"),
        toolchain=toolchain("zig"),
        folder=out,
        files={out / "script.ld": "a script\n"},
        compile=steps,
        link=LinkStep(
            inputs=objects,
            script=out / "script.ld",
            output=out / "firmware.elf",
            unfinished=unfinished,
            attempts=((shell, "-c", f"cat {' '.join(map(str, objects))} >{unfinished}"),),
            roomy_output=out / "roomy",
            roomy_attempts=(),
        ),
    )
    execute(plan, jobs=1)


def manifest(files: dict[str, bytes]) -> Manifest:
    """Return the manifest of a project with these files, of which main.c is for editing."""
    from ferrule.firmware.folder import sha256

    return Manifest(
        ferrule_version="1",
        platform="bare-metal",
        model="m",
        digest="",
        board="board",
        toolchain="zig",
        optimization="O3",
        sources=("a.c",),
        include_dirs=(),
        files={name: sha256(data) for name, data in files.items()},
        starters=("main.c",),
    )


def write(folder: Path, generated: dict[str, bytes], main: bytes) -> None:
    """Generate a project by force."""
    files = {**generated, "main.c": main}
    write_folder(folder / "project", generated, {"main.c": main}, manifest(files), force=True)


def prepare_update(folder: Path) -> None:
    """Write a project of which the user has edited a generated file and main.c."""
    write(folder, {"a.c": b"old a", "old/b.c": b"old b", "c.h": b"same", "d.h": b"old d"}, b"old main")
    (folder / "project" / "d.h").write_bytes(b"edited d")
    (folder / "project" / "main.c").write_bytes(b"edited main")


def update(folder: Path) -> None:
    """Update the project."""
    write(folder, {"a.c": b"new a", "new/b.c": b"new b", "c.h": b"same", "d.h": b"new d"}, b"new main")


def create(folder: Path) -> None:
    """Generate a new project."""
    write(folder, {"a.c": b"a", "deep/b.c": b"b"}, b"main")


def prepare_report(folder: Path) -> None:
    """Write an older report."""
    (folder / "report.json").write_bytes(b"old" * 1000)


def report(folder: Path) -> None:
    """Write a report."""
    write_file(folder / "report.json", b"new" * 1000)


def check_report(folder: Path) -> None:
    """Check that the report is complete, the old one or the new one."""
    assert (folder / "report.json").read_bytes() in {b"old" * 1000, b"new" * 1000}


def check_build(folder: Path) -> None:
    """Check that there is no firmware or a complete one."""
    elf = folder / "project" / "build" / "firmware.elf"
    assert not elf.exists() or elf.read_bytes() in {b"old", b"source one\nsource two\n"}


def check_create(folder: Path) -> None:
    """Check that the project is complete or absent."""
    assert not (folder / "project").exists() or (folder / "project" / "ferrule-project.json").is_file()


def check_update(folder: Path) -> None:
    """Check that the user's versions are in the folder, under whatever names."""
    assert {b"edited d", b"edited main"} <= set(tree(folder).values())


def nothing(_: Path) -> None:
    """Prepare nothing."""


Step = Callable[[Path], None]
ACTIONS: dict[str, tuple[Step, Step, Step]] = {
    "build": (prepare_build, build, check_build),
    "create": (nothing, create, check_create),
    "update": (prepare_update, update, check_update),
    "report": (prepare_report, report, check_report),
}


def forked(action: Step, folder: Path, library: ctypes.CDLL, when: int) -> tuple[int, int]:
    """Perform an action in a fork that dies at the call number `when`; return its status and its number of calls."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        library.killer_arm(os.fsencode(folder), ctypes.c_long(when))
        action(folder)
        os.write(writer, str(library.killer_seen()).encode())
        os._exit(0)
    os.close(writer)
    seen = os.read(reader, 20)
    os.close(reader)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(seen or 0)


def kill(name: str, folder: Path, library: ctypes.CDLL, stride: int) -> int:
    """Kill an action at every `stride`-th call, and return the number of calls."""
    prepare, action, check = ACTIONS[name]

    def begin() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        prepare(folder)

    begin()
    status, calls = forked(action, folder, library, 0)
    assert status == 0
    expected = swept(folder)
    for when in range(1, calls + 1, stride):
        begin()
        status, _ = forked(action, folder, library, when)
        assert status == -signal.SIGKILL, f"{name}, call {when} of {calls}: the action ended with {status}"
        check(folder)
        status, _ = forked(action, folder, library, 0)
        assert status == 0, f"{name}, after a death at call {when} of {calls}: {status}"
        found = swept(folder)
        assert found == expected, f"{name}, after a death at call {when} of {calls}: {found} != {expected}"
    return calls


def main(place: str, path: str, stride: str) -> None:
    """Kill each action at every `stride`-th call."""
    folder = Path(place) / "trial"
    os.environ["FERRULE_CACHE"] = str(folder / "cache")
    for name in ACTIONS:
        print(name, kill(name, folder, ctypes.CDLL(path), int(stride)))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
