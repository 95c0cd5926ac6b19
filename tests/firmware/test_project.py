# SPDX-License-Identifier: Apache-2.0
"""Generated projects: their content, their build, and their update."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from children import ran
from formatting import check_formatted
from needs import require_program
from small_networks import dense, float_dense, two_by_two

from ferrule import generate
from ferrule.boards import load_board
from ferrule.errors import FerruleError
from ferrule.firmware import Kept, Project, Toolchain, build_project, load_project, read_image
from ferrule.firmware.manifest import MANIFEST_NAME
from ferrule.network import Network
from ferrule.resources import root


def write(
    folder: Path,
    network: Network | None = None,
    *,
    board: str | Path = "mps2-an386",
    toolchain: str = "zig",
    optimization: str = "O3",
    platform: str = "bare-metal",
    force: bool = False,
) -> Project:
    return generate(
        network or dense(),
        board=board,
        toolchain=toolchain,
        optimization=optimization,
        platform=platform,
        out=folder,
        force=force,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "build" not in path.relative_to(folder).parts
    }


def make(folder: Path, *arguments: str) -> None:
    require_program("make", "apt-get install make")
    done = ran(["make", "-C", str(folder), f"PYTHON={sys.executable}", *arguments])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_a_python_without_zig(tmp_path: Path) -> None:
    tool = require_program("make", "apt-get install make")
    folder = write(tmp_path / "project", toolchain="zig").folder
    command = [tool, "-C", str(folder), "PYTHON=false"]
    done = ran(command)
    assert (done.returncode, done.stdout.count("-c main.c")) == (2, 0)
    assert "false lacks the wheel ziglang: make PYTHON=... names a Python with it" in done.stderr
    subprocess.run([*command, "clean"], check=True)
    planned = ran([*command, "-n", "CC=other-cc"], check=True)
    assert "other-cc" in planned.stdout


def test_main_sets_registers_up_before_the_uart(tmp_path: Path) -> None:
    text = (write(tmp_path / "stm32", board="stm32f4_discovery").folder / "main.c").read_text(encoding="utf-8")
    described = load_board("stm32f4_discovery").setup_for(["usart2"])
    rows = re.findall(r"/\* (.*) \*/\n    \{(0x\w{8})U, (0x\w{8})U, (0x\w{8})U\},", text)
    assert rows == [
        (each.why, *(f"{value:#010x}" for value in (each.address, each.clear, each.set))) for each in described
    ]
    assert text.index("    set_up_registers();") < text.index("ferrule_uart_stm32_init(&uart)")
    assert "set_up" not in (write(tmp_path / "mps2").folder / "main.c").read_text(encoding="utf-8")


def test_main_waits_for_what_a_register_reports(tmp_path: Path) -> None:
    text = (write(tmp_path / "waits", board="nucleo_l4r5zi").folder / "main.c").read_text(encoding="utf-8")
    described = load_board("nucleo_l4r5zi").setup_for(["lpuart1"])
    rows = re.findall(r"/\* (.*) \*/\n    \{(0x\w{8})U, (0x\w{8})U, (0x\w{8})U, (0x\w{8})U\},", text)
    assert [(row[0], row[-1]) for row in rows] == [(each.why, f"{each.wait:#010x}") for each in described]
    assert "(ferrule_mmio_read32(each->address) & each->wait) == each->wait" in text
    check_formatted([tmp_path / "waits" / "main.c"])


def test_main_gives_the_uart_its_own_clock_or_its_buffer(tmp_path: Path) -> None:
    texts = {
        board: (write(tmp_path / board, board=board).folder / "main.c").read_text(encoding="utf-8")
        for board in ("mps3-an547", "nrf52840dk")
    }
    assert ".clock_hz = 25000000U," in texts["mps3-an547"]
    assert ".clock_hz" not in texts["nrf52840dk"]
    assert ".buffer = &uart_buffer," in texts["nrf52840dk"]


@pytest.mark.cc
def test_make_builds_it_without_ferrule(any_toolchain: Toolchain, tmp_path: Path) -> None:
    """The firmware is the same file as by `ferrule build`, in another folder too."""
    project = write(tmp_path / "first", toolchain=any_toolchain.name)
    by_ferrule = build_project(project).path.read_bytes()
    moved = tmp_path / "a second one, it's moved"
    project.folder.rename(moved)
    shutil.rmtree(moved / "build")
    make(moved)
    elf = moved / "build" / "firmware.elf"
    assert elf.read_bytes() == by_ferrule
    by_make = read_image(elf)
    assert by_make.entry == by_make.address_of("ferrule_reset")
    assert str(tmp_path).encode() not in by_ferrule
    make(moved, "clean")
    assert not (moved / "build").exists()
    make(moved, "OPT=-Os")


@pytest.mark.cc
@pytest.mark.parametrize(
    "any_toolchain", [pytest.param("zig", marks=pytest.mark.nightly), "arm-none-eabi-gcc"], indirect=True
)
def test_cmake_builds_it_too(any_toolchain: Toolchain, tmp_path: Path) -> None:
    """The firmware is the same file as by make in another folder."""
    cmake = require_program("cmake", "apt-get install cmake")
    other = write(tmp_path / "other" / "project", toolchain=any_toolchain.name).folder
    make(other)
    folder = write(tmp_path / "project", toolchain=any_toolchain.name).folder
    configure = [
        cmake,
        "-S",
        ".",
        "-B",
        "cmake",
        "--toolchain",
        "toolchain.cmake",
        f"-DFERRULE_PYTHON={sys.executable}",
    ]
    for argv in (configure, [cmake, "--build", "cmake"]):
        done = ran(argv, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "cmake" / "firmware.elf").read_bytes() == (other / "build" / "firmware.elf").read_bytes()


@pytest.mark.cc
def test_a_board_given_by_path_goes_along(any_toolchain: Toolchain, tmp_path: Path) -> None:
    board = tmp_path / "boards" / "mine"
    shutil.copytree(root() / "boards" / "mps2-an386", board)
    common = tmp_path / "boards" / "common" / "core.repl"
    common.parent.mkdir()
    (board / "mps2-an386.repl").rename(common)
    (board / "mps2-an386.repl").write_text('using "../common/core.repl"\n', encoding="utf-8")
    project = write(tmp_path / "project", board=board, toolchain=any_toolchain.name)
    assert project.manifest.board == "board/mine"
    assert {"board/mine/board.toml", "board/mine/mps2-an386.repl", "board/common/core.repl"} <= set(
        project.manifest.files
    )
    shutil.rmtree(tmp_path / "boards")
    project.folder.rename(tmp_path / "moved")
    build_project(load_project(tmp_path / "moved"))
    make(tmp_path / "moved")


def test_a_board_that_includes_from_afar_is_refused(tmp_path: Path) -> None:
    board = tmp_path / "boards" / "mine"
    shutil.copytree(root() / "boards" / "mps2-an386", board)
    (board / "mps2-an386.repl").rename(tmp_path / "core.repl")
    (board / "mps2-an386.repl").write_text('using "../../core.repl"\n', encoding="utf-8")
    with pytest.raises(FerruleError, match="lies outside of") as caught:
        write(tmp_path / "project", board=board)
    assert caught.value.hint is not None
    assert not (tmp_path / "project").exists()


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_the_manifest_names_every_file(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    assert set(contents(project.folder)) == {*project.manifest.files, MANIFEST_NAME}
    assert set(project.manifest.sources) <= set(project.manifest.files)
    assert load_project(project.folder).manifest == project.manifest


def test_no_path_of_this_machine_is_in_it(tmp_path: Path) -> None:
    for toolchain in ("zig", "arm-none-eabi-gcc"):
        project = write(tmp_path / toolchain, toolchain=toolchain)
        places = [str(tmp_path), str(root()), str(Path.home()), sys.prefix]
        for name, data in contents(project.folder).items():
            for place in places:
                assert place.encode() not in data, (name, place)


@pytest.mark.parametrize("network", [dense(), two_by_two(), float_dense()])
def test_generated_c_is_formatted(network: Network, tmp_path: Path) -> None:
    program = require_program("clang-format", "pip install -e '.[dev]'")
    project = write(tmp_path / "project", network)
    style = root() / ".clang-format"
    files = [name for name in project.manifest.files if name.endswith((".c", ".h")) and not name.startswith("lib/")]
    assert "main.c" in files
    argv = [str(program), f"--style=file:{style}", "--dry-run", "-Werror", *files]
    done = ran(argv, cwd=project.folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("network", [dense(), two_by_two(), float_dense()])
def test_generated_c_passes_a_linter(network: Network, tmp_path: Path) -> None:
    cppcheck = require_program("cppcheck", "apt-get install cppcheck")
    project = write(tmp_path / "project", network)
    argv = [
        *(cppcheck, "--quiet", "--std=c11", "--error-exitcode=1", "--enable=warning,style,performance,portability"),
        *("--inline-suppr", "--suppress=*:lib/*", "--suppress=unusedStructMember", "-UFERRULE_PORT_H"),
        "--suppress=invalidPointerCast",  # the workspace is a byte array aligned for every type
        *(f"-I{folder}" for folder in project.manifest.include_dirs),
        *("main.c", "model"),
    ]
    done = ran(argv, cwd=project.folder)
    assert done.returncode == 0, done.stdout + done.stderr


def test_writing_again_changes_nothing(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    before = {path: path.stat().st_mtime_ns for path in project.folder.rglob("*") if path.is_file()}
    write(tmp_path / "project")
    assert {path: path.stat().st_mtime_ns for path in project.folder.rglob("*") if path.is_file()} == before


def test_an_update_replaces_adds_and_removes(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    (project.folder / "notes.txt").write_text("mine", encoding="utf-8")
    (project.folder / "build").mkdir()
    write(tmp_path / "project", two_by_two(), board="mps2-an500")
    expected = write(tmp_path / "fresh", two_by_two(), board="mps2-an500")
    updated = contents(project.folder)
    assert updated.pop("notes.txt") == b"mine"
    assert updated == contents(expected.folder)
    assert not (project.folder / "board" / "mps2-an386").exists()


def test_files_of_the_user_are_left_alone_and_told(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    edit(project, "main.c", "Makefile")
    (project.folder / "Makefile").unlink()
    before = contents(project.folder)
    assert write(tmp_path / "project").kept == (Kept(name="main.c", beside=None),)
    again = write(tmp_path / "project", two_by_two())
    assert again.kept == (Kept(name="main.c", beside="main.c.new"),)
    fresh = write(tmp_path / "fresh", two_by_two())
    updated = contents(again.folder)
    assert updated["main.c"] == before["main.c"]
    assert updated["main.c.new"] == contents(fresh.folder)["main.c"]
    assert updated["Makefile"] == contents(fresh.folder)["Makefile"]
    assert write(tmp_path / "project", two_by_two()).kept == again.kept

    (again.folder / "main.c.new").replace(again.folder / "main.c")
    assert write(tmp_path / "project", two_by_two()).kept == ()
    assert contents(again.folder) == contents(fresh.folder)


def test_a_file_of_the_user_that_is_called_like_a_new_one_is_not_lost(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    edit(project, "main.c")
    (project.folder / "main.c.new").write_text("mine", encoding="utf-8")
    before = contents(project.folder)
    with pytest.raises(FerruleError, match=r"would be lost: main\.c\.new$"):
        write(tmp_path / "project", two_by_two())
    assert contents(project.folder) == before


def test_generated_files_that_were_edited_stop_it(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    edit(project, "ferrule.mk", "model/ferrule_dense.c")
    before = contents(project.folder)
    with pytest.raises(FerruleError, match=r"would be lost: ferrule\.mk, model/ferrule_dense\.c$") as caught:
        write(tmp_path / "project")
    assert "force=True" in (caught.value.hint or "")
    assert contents(project.folder) == before


def test_force_puts_edited_files_aside(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    fresh = contents(project.folder)
    for turn, beside in enumerate(("ferrule.mk.orig", "ferrule.mk.orig2")):
        edit(project, "ferrule.mk")
        edited = (project.folder / "ferrule.mk").read_bytes()
        again = write(tmp_path / "project", force=True)
        assert again.kept == (Kept(name="ferrule.mk", beside=beside),), turn
        assert (project.folder / beside).read_bytes() == edited
    after = contents(project.folder)
    assert {name: after[name] for name in fresh} == fresh


def test_force_leaves_files_of_the_user_alone_too(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    edit(project, "main.c")
    before = contents(project.folder)
    assert write(tmp_path / "project", force=True).kept == (Kept(name="main.c", beside=None),)
    assert contents(project.folder) == before


def test_a_project_stays_with_its_platform(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    path = project.folder / MANIFEST_NAME
    path.write_text(path.read_text(encoding="utf-8").replace('"bare-metal"', '"zephyr"'), encoding="utf-8")
    before = contents(project.folder)
    with pytest.raises(FerruleError, match="holds a project for zephyr, which cannot become one for bare-metal"):
        write(tmp_path / "project", force=True)
    assert contents(project.folder) == before


def edit(project: Project, *names: str) -> None:
    for name in names:
        with (project.folder / name).open("a", encoding="utf-8") as file:
            file.write("# mine\n")


def test_a_new_file_does_not_replace_one_of_the_user(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    theirs = project.folder / "model" / "ferrule_two_by_two.c"
    theirs.write_text("mine", encoding="utf-8")
    with pytest.raises(FerruleError, match=r"model/ferrule_two_by_two\.c"):
        write(tmp_path / "project", two_by_two())
    assert theirs.read_text(encoding="utf-8") == "mine"


def test_a_deleted_file_comes_back(tmp_path: Path) -> None:
    project = write(tmp_path / "project")
    before = contents(project.folder)
    (project.folder / "main.c").unlink()
    write(tmp_path / "project")
    assert contents(project.folder) == before


def test_other_folders_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FerruleError, match="is not empty and holds no generated project"):
        write(folder)
    assert contents(folder) == {"thesis.txt": b"mine"}
    with pytest.raises(FerruleError, match="is a file"):
        write(folder / "thesis.txt")
    with pytest.raises(FerruleError, match="cannot be written"):
        write(folder / "thesis.txt" / "project")


def test_an_empty_folder_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    write(folder)
    assert (folder / MANIFEST_NAME).is_file()
    assert folder.stat().st_mode & 0o777 == 0o777 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("failing", [0, 5, -1])
def test_a_failing_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    count = len(contents(write(tmp_path / "whole").folder))
    shutil.rmtree(tmp_path / "whole")
    write_bytes, written = Path.write_bytes, []

    def fail(path: Path, data: bytes) -> int:
        written.append(path)
        if len(written) - 1 == failing % count:
            raise OSError(28, "No space left on device")
        return write_bytes(path, data)

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(FerruleError, match="cannot be written: No space left on device"):
        write(tmp_path / "deep" / "project")
    assert len(written) == failing % count + 1
    assert list((tmp_path / "deep").iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: Path, __: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "project")
    assert list(tmp_path.iterdir()) == []


def test_an_update_that_fails_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = write(tmp_path / "project")
    replace, replaced = Path.replace, []

    def fail(path: Path, target: Path) -> Path:
        replaced.append(target)
        if len(replaced) > 3:
            raise OSError(28, "No space left on device")
        return replace(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(FerruleError, match="No space left"):
            write(tmp_path / "project", two_by_two())
    assert not [path for path in project.folder.rglob(".*") if path.is_file()]
    write(tmp_path / "project", two_by_two())
    assert contents(project.folder) == contents(write(tmp_path / "fresh", two_by_two()).folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"schema_version": 2', '"schema_version": 1', "schema version 1, expected 2"),
        ('"schema_version": 2,', "", "schema_version"),
        ('"platform": "bare-metal",', "", "platform"),
        ('"starters": [', '"starters": ["../notes.txt",', r"'\.\./notes\.txt' is outside"),
        ('"toolchain": "zig"', '"toolchain": 3', r"toolchain"),
        ('"toolchain": "zig",', "", "toolchain"),
        ('"toolchain": "zig"', '"extra": 1, "toolchain": "zig"', "extra"),
        ('"main.c",', '"main.c", "../main.c",', r"'\.\./main\.c' is outside"),
        ('"lib/include"', '"/usr/include"', "'/usr/include' is outside"),
        ('"board/mps2-an386"', '"../mps2-an386"', "'../mps2-an386' is outside"),
        ('"README.md": "', '"../README.md": "', "is outside"),
        ('"model": "', '"model": "\\u202e', r"model contains the character U\+202E"),
        ("{", "", "Expected `object`"),
        ('"sources": [', '"sources" [', "JSON is malformed"),
    ],
)
def test_manifests_that_are_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = write(tmp_path / "project").folder
    path = folder / MANIFEST_NAME
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FerruleError, match=message) as caught:
        load_project(folder)
    assert str(path) in str(caught.value)
    assert caught.value.hint is not None
    with pytest.raises(FerruleError, match=message):
        write(folder)


def test_what_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="is not a generated project"):
        load_project(tmp_path)
    (tmp_path / MANIFEST_NAME).write_bytes(b"\xff\xfe")
    with pytest.raises(FerruleError, match=MANIFEST_NAME):
        load_project(tmp_path)


def test_unknown_choices_write_nothing(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match="no platform 'bare_metal'") as caught:
        write(tmp_path / "project", platform="bare_metal")
    assert caught.value.hint == "did you mean bare-metal?"
    with pytest.raises(FerruleError, match="no toolchain 'tcc'"):
        write(tmp_path / "project", toolchain="tcc")
    with pytest.raises(FerruleError, match="no optimization 'O1'"):
        write(tmp_path / "project", optimization="O1")
    assert list(tmp_path.iterdir()) == []


def test_a_uart_without_driver_is_refused(tmp_path: Path) -> None:
    board = tmp_path / "other"
    shutil.copytree(root() / "boards" / "mps2-an386", board)
    shutil.copytree(root() / "boards" / "mps2", tmp_path / "mps2")
    platform = tmp_path / "mps2" / "mps2.repl"
    platform.write_text(platform.read_text(encoding="utf-8").replace("UART.CMSDK_APB_UART", "UART.PL011"), "utf-8")
    with pytest.raises(FerruleError, match=r"no driver for its link UART 'uart0' of class UART\.PL011") as caught:
        write(tmp_path / "project", board=board)
    assert "UART.CMSDK_APB_UART" in (caught.value.hint or "")


@pytest.mark.parametrize(("board", "line"), [("mps2-an500", "32u"), ("mps2-an386", None)])
def test_a_project_states_the_lines_of_the_data_cache(tmp_path: Path, board: str, line: str | None) -> None:
    project = write(tmp_path / "bare", board=board)
    assert project.manifest.defines.get("FERRULE_CACHE_LINE") == line
    assert ("-DFERRULE_CACHE_LINE=" in (project.folder / "ferrule.mk").read_text()) is bool(line)
    folder = write(tmp_path / "cmsis", board=board, platform="cmsis").folder
    assert ("SCB_EnableDCache();" in (folder / "board" / "system.c").read_text()) is bool(line)
    for name in ("ferrule.cmake", "platform.clayer.yml"):
        assert ("FERRULE_CACHE_LINE" in (folder / name).read_text()) is bool(line)
