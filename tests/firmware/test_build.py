# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import shutil
import struct
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from children import ran
from covering import covering
from needs import require_program

from ferrule.architectures import CORTEX_M
from ferrule.boards import board_names, load_board
from ferrule.budget import limits
from ferrule.errors import FerruleError
from ferrule.firmware import (
    BuildError,
    BuildPlan,
    Group,
    SourceSet,
    TooLargeError,
    Toolchain,
    execute,
    plan_build,
    read_image,
    toolchain,
)
from ferrule.resources import root
from ferrule.scratch import locked

pytestmark = pytest.mark.cc

SIZES = {"TEST_WEIGHTS": 1000, "TEST_WORKSPACE": 2000, "TEST_BSS": 3000, "TEST_DATA": 400}

STARTUP = CORTEX_M.startup.source_paths


def plan_large(
    toolchain: Toolchain, programs: Path, folder: Path, board: str = "mps2-an386", **sizes: int
) -> BuildPlan:
    defines = {name: str(size) for name, size in {**SIZES, **sizes}.items()}
    return plan_build(SourceSet(sources=[programs / "large.c"], defines=defines), load_board(board), toolchain, folder)


def plan_text(toolchain: Toolchain, folder: Path, text: str) -> BuildPlan:
    source = folder / "text.c"
    source.write_text(text, encoding="utf-8")
    return plan_build(SourceSet(sources=[source]), load_board("mps2-an386"), toolchain, folder / "build")


@covering(
    "name, any_toolchain, optimization",
    board_names(),
    ("zig", "arm-none-eabi-gcc"),
    ("O3", "Os"),
    seed=7,
    gate=6,
    indirect=["any_toolchain"],
)
def test_every_board_builds_without_a_word(
    name: str, optimization: str, any_toolchain: Toolchain, programs: Path, tmp_path: Path
) -> None:
    board = load_board(name)
    defines = {name: str(size) for name, size in SIZES.items()}
    plan = plan_build(
        SourceSet(sources=[programs / "large.c"], defines=defines),
        board,
        any_toolchain,
        tmp_path / "build",
        optimization,
    )
    steps: list[tuple[int, int, str]] = []
    elf = execute(plan, progress=lambda *step: steps.append(step))

    total = 2 + len(STARTUP)
    assert [(done, of) for done, of, _ in steps] == [(done, total) for done in range(1, total + 1)]
    assert steps[-1][2] == "firmware.elf"
    for argv in (*(step.argv for step in plan.compile), plan.link.attempts[0]):
        again = ran(argv, check=True)
        assert (again.stdout, again.stderr) == ("", "")

    image = read_image(elf)
    code, data = board.memory(board.placement.code), board.memory(board.placement.data)
    assert image.entry == image.address_of("ferrule_reset")
    assert image.address_of("ferrule_vectors") == code.address
    assert image.address_of("ferrule_stack_limit") == data.address
    assert image.address_of("ferrule_stack_top") == data.address + board.placement.stack_bytes
    assert image.address_of("test_weights") in board.memory(board.placement.weights)
    assert image.address_of("test_workspace") in board.memory(board.placement.workspace)
    assert image.groups[Group.WEIGHTS] == 1000
    assert image.groups[Group.WORKSPACE] == 2000
    assert 3000 <= image.groups[Group.BSS] <= 3600
    assert 400 <= image.groups[Group.DATA] <= 408
    assert image.groups[Group.STACK] == board.placement.stack_bytes
    section = image.section(".data")
    assert section is not None
    assert section.load_address % 8 == 0
    assert section.load_address in code
    assert section.address in data
    bss = image.section(".bss")
    assert bss is not None
    assert bss.load_address == bss.address


def test_the_same_sources_give_the_same_bytes(any_toolchain: Toolchain, programs: Path, tmp_path: Path) -> None:
    one = execute(plan_large(any_toolchain, programs, tmp_path / "one")).read_bytes()
    other = execute(plan_large(any_toolchain, programs, tmp_path / "another"), jobs=1).read_bytes()
    assert one == other


def test_unused_functions_and_objects_are_dropped(any_toolchain: Toolchain, tmp_path: Path) -> None:
    text = "int main(void); int unused(void); int unused(void) { return 1; }\nint main(void) { return 0; }\n"
    image = read_image(execute(plan_text(any_toolchain, tmp_path, text)))
    assert image.has("main")
    assert not image.has("unused")
    assert not image.has("memmove")


@pytest.mark.parametrize(
    ("large", "memory", "part", "others"),
    [
        ("TEST_WEIGHTS", "ssram1", "weights", ("code", "data")),
        ("TEST_WORKSPACE", "ssram23", "workspace", ("stack", "data", "bss")),
        ("TEST_BSS", "ssram23", "bss", ("stack", "data", "workspace")),
    ],
)
def test_a_firmware_that_is_too_big_says_by_how_much(
    large: str,
    memory: str,
    part: str,
    others: tuple[str, ...],
    any_toolchain: Toolchain,
    programs: Path,
    tmp_path: Path,
) -> None:
    have = 4 << 20
    plan = plan_large(any_toolchain, programs, tmp_path, **{large: have})
    with pytest.raises(TooLargeError, match=f"too big for board mps2-an386: memory '{memory}'") as caught:
        execute(plan)
    error = caught.value
    parts = dict(error.parts)
    assert (error.memory, error.have_bytes) == (memory, have)
    assert have <= parts[part] < have + 1000
    assert set(others) <= set(parts)
    assert sum(parts.values()) <= error.need_bytes <= sum(parts.values()) + 64
    assert f"({error.need_bytes - have:,} B too many)" in str(error)
    assert not plan.elf.exists()
    assert not list(tmp_path.glob("*.elf"))


def test_what_just_fits_is_built(any_toolchain: Toolchain, programs: Path, tmp_path: Path) -> None:
    board = load_board("mps2-an386")
    fixed = read_image(execute(plan_large(any_toolchain, programs, tmp_path))).ram_bytes
    spare = (4 << 20) - fixed - 16
    plan = plan_large(any_toolchain, programs, tmp_path, TEST_WORKSPACE=SIZES["TEST_WORKSPACE"] + spare)
    image = read_image(execute(plan))
    assert image.ram_bytes <= board.memory("ssram23").size_bytes
    with pytest.raises(TooLargeError, match="'ssram23'"):
        execute(plan_large(any_toolchain, programs, tmp_path, TEST_WORKSPACE=SIZES["TEST_WORKSPACE"] + spare + 32))


def test_a_failed_compiler_is_quoted(any_toolchain: Toolchain, tmp_path: Path) -> None:
    plan = plan_text(any_toolchain, tmp_path, "int main(void);\nint main(void) { return missing_name; }\n")
    with pytest.raises(BuildError, match="missing_name") as caught:
        execute(plan)
    error = caught.value
    assert error.argv == plan.compile[0].argv
    assert error.cwd == plan.folder
    assert error.exit_code != 0
    assert 0 < len(error.last_lines) <= 20
    assert error.hint is not None
    assert "text.c" in error.hint
    assert not plan.elf.exists()


def test_a_warning_is_an_error(any_toolchain: Toolchain, tmp_path: Path) -> None:
    text = "int main(void);\nint main(void) { long long wide = 1; int narrow = wide; return narrow; }\n"
    with pytest.raises(BuildError, match="conversion"):
        execute(plan_text(any_toolchain, tmp_path, text))


def test_a_missing_symbol_is_named(any_toolchain: Toolchain, tmp_path: Path) -> None:
    text = "int main(void); int elsewhere(void);\nint main(void) { return elsewhere(); }\n"
    plan = plan_text(any_toolchain, tmp_path, text)
    with pytest.raises(BuildError, match="elsewhere"):
        execute(plan)
    assert not plan.elf.exists()


def test_a_failure_leaves_no_older_firmware(any_toolchain: Toolchain, tmp_path: Path) -> None:
    execute(plan_text(any_toolchain, tmp_path, "int main(void);\nint main(void) { return 0; }\n"))
    plan = plan_text(any_toolchain, tmp_path, "#error no\n")
    with pytest.raises(BuildError):
        execute(plan)
    assert not plan.elf.exists()


def test_a_folder_that_cannot_be_written_is_named(any_toolchain: Toolchain, programs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(FerruleError, match=r"cannot build in .*file"):
        execute(plan_large(any_toolchain, programs, tmp_path / "file"))


def test_a_build_waits_for_another_one_in_its_folder(programs: Path, tmp_path: Path) -> None:
    plan = plan_large(toolchain("zig"), programs, tmp_path)
    plan.folder.mkdir(exist_ok=True)
    waits, steps = threading.Event(), []

    def say(done: int, _total: int, name: str) -> None:
        steps.append((done, name))
        waits.set()

    thread = threading.Thread(target=execute, args=(plan,), kwargs={"progress": say})
    with locked(plan.folder):
        thread.start()
        waits.wait()
        assert steps == [(0, "")]
        assert not list(plan.folder.iterdir())
    thread.join()
    assert steps[-1][1] == "firmware.elf"
    assert plan.elf.is_file()


def test_other_flags_have_other_objects(programs: Path, tmp_path: Path) -> None:
    plans = [plan_large(toolchain("zig"), programs, tmp_path, TEST_BSS=size) for size in (100, 200)]
    first, second = ({step.output for step in plan.compile} for plan in plans)
    assert not first & second


def test_a_failure_ends_the_other_commands(programs: Path, tmp_path: Path) -> None:
    """The output is a pipe that `sleep` holds open, so that the build would wait for it."""
    plan = plan_large(toolchain("zig"), programs, tmp_path)
    shell = require_program("sh", "apt-get install dash")
    scripts = [f"sleep 1000 & echo >{tmp_path}/sleeps; wait", f"until [ -e {tmp_path}/sleeps ]; do :; done; exit 3"]
    steps = tuple(
        replace(step, argv=(shell, "-c", script)) for step, script in zip(plan.compile, scripts, strict=False)
    )
    with pytest.raises(BuildError, match="exit code 3"):
        execute(replace(plan, compile=steps), jobs=2)


def test_a_command_killed_by_a_signal_says_so(programs: Path, tmp_path: Path) -> None:
    plan = plan_large(toolchain("zig"), programs, tmp_path)
    shell = require_program("sh", "apt-get install dash")
    step = replace(plan.compile[0], argv=(shell, "-c", "kill -XFSZ $$"))
    with pytest.raises(BuildError, match="sh was ended by SIGXFSZ"):
        execute(replace(plan, compile=(step,)))


def test_odd_paths_build(any_toolchain: Toolchain, programs: Path, tmp_path: Path) -> None:
    assert execute(plan_large(any_toolchain, programs, tmp_path / "a b, c" / "é")).is_file()


def test_a_board_that_is_only_a_folder_builds(
    any_toolchain: Toolchain, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(root() / "boards" / "mps2-an500", tmp_path / "boards" / "tiny")
    shutil.copytree(root() / "boards" / "mps2", tmp_path / "boards" / "mps2")
    platform = tmp_path / "boards" / "mps2" / "mps2.repl"
    platform.write_text(platform.read_text(encoding="utf-8").replace("size: 0x00400000", "size: 0x8000"), "utf-8")
    monkeypatch.setenv("FERRULE_BOARDS", os.pathsep.join([str(tmp_path / "boards")]))
    assert execute(plan_large(any_toolchain, programs, tmp_path / "build", board="tiny")).is_file()
    with pytest.raises(TooLargeError, match="board tiny: memory 'ssram23' holds 32,768 B") as caught:
        execute(plan_large(any_toolchain, programs, tmp_path / "build", board="tiny", TEST_BSS=20_000))
    roomier = (caught.value.hint or "").split("room for these parts: ")[1].split(", ")
    assert "nrf52840dk" in roomier
    assert not {"tiny", "microbit"} & {*roomier}


def test_symbols_are_found_by_address(any_toolchain: Toolchain, programs: Path, tmp_path: Path) -> None:
    image = read_image(execute(plan_large(any_toolchain, programs, tmp_path)))
    main = image.address_of("main")
    assert image.describe(main) == image.describe(main | 1) == "main"
    assert image.describe(main + 4) == "main+0x4"
    workspace = image.address_of("test_workspace")
    assert image.describe(workspace + 1998) == "test_workspace+0x7ce"
    assert image.symbol_at(0xF000_0000) is None
    assert image.describe(0xF000_0000) == "?"
    with pytest.raises(FerruleError, match=r"there is no symbol 'test_work' in firmware.elf"):
        image.address_of("test_work")


@pytest.mark.parametrize(("size", "message"), [(100, "not a valid ELF file"), (101, "takes 101 bytes")])
def test_a_file_of_any_size_is_read_in_bounds(tmp_path: Path, size: int, message: str) -> None:
    path = tmp_path / "large.elf"
    path.write_bytes(bytes(size))
    with limits(bytes=100), pytest.raises(FerruleError, match=message):
        read_image(path)


def test_what_is_no_firmware_is_refused(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    with pytest.raises(FerruleError, match="cannot read"):
        read_image(tmp_path / "none.elf")
    path = tmp_path / "text.elf"
    path.write_text("no ELF file", encoding="utf-8")
    with pytest.raises(FerruleError, match="not a valid ELF file"):
        read_image(path)
    path.write_bytes(b"\x7fELF\x01\x01\x01")
    with pytest.raises(FerruleError, match="not a valid ELF file"):
        read_image(path)
    source = tmp_path / "host.c"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    subprocess.run([*host_cc, str(source), "-o", str(tmp_path / "host")], check=True)
    with pytest.raises(FerruleError, match="not a firmware"):
        read_image(tmp_path / "host")


def elf_with_a_segment(size_bytes: int) -> bytes:
    """Return a firmware of one segment with 8 bytes, whose header says that there are `size_bytes`."""
    identity = b"\x7fELF\x01\x01\x01" + bytes(9)
    header = struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, 0x101, 52, 0, 0x5000000, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 84, 0x100, 0x100, size_bytes, size_bytes, 5, 4)
    return identity + header + segment + bytes(range(8))


def test_a_segment_ends_within_the_file(tmp_path: Path) -> None:
    path = tmp_path / "firmware.elf"
    path.write_bytes(elf_with_a_segment(8))
    assert read_image(path).read(0x102, 2) == b"\x02\x03"
    for size_bytes in (9, 0xFFFF_FFFF):
        path.write_bytes(elf_with_a_segment(size_bytes))
        with pytest.raises(FerruleError, match=f"a segment has {size_bytes} bytes, and the file ends after 8 of them"):
            read_image(path)
