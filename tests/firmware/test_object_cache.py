# SPDX-License-Identifier: Apache-2.0
"""Objects of earlier builds are reused where nothing has changed, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ferrule.boards import load_board
from ferrule.firmware import SourceSet, Toolchain, build, execute, object_cache, plan_build, toolchain
from ferrule.firmware.plan import BuildPlan

pytestmark = pytest.mark.cc

MAIN = """
#include "part.h"
int main(void)
{
    return PART;
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of objects in an empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FERRULE_CACHE", str(folder))
    return folder / "objects"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that a compiler or linker has made so far."""
    names: list[str] = []
    run = build.Commands.run

    def counting(self: build.Commands, argv: tuple[str, ...]) -> None:
        names.append(Path(argv[-1]).name)
        run(self, argv)

    monkeypatch.setattr(build.Commands, "run", counting)
    return names


def project(folder: Path, main: str = MAIN, part: str = "#define PART 0\n") -> Path:
    for name, text in {"main.c": main, "include/part.h": part}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def planned(folder: Path, tools: Toolchain | None = None, optimization: str = "O3", *includes: str) -> BuildPlan:
    return plan_build(
        SourceSet(sources=[folder / "main.c"], include_dirs=[folder / name for name in (*includes, "include")]),
        load_board("mps2-an386"),
        tools or toolchain("zig"),
        folder / "build",
        optimization,
        relative_to=folder,
    )


def test_the_same_project_elsewhere_is_not_compiled_again(
    any_toolchain: Toolchain, tmp_path: Path, compiled: list[str]
) -> None:
    """The project's folder is an include folder, too, as in the projects that Ferrule generates."""
    first = execute(planned(project(tmp_path / "first"), any_toolchain, "O3", ".")).read_bytes()
    assert "main.o" in compiled
    compiled.clear()
    elsewhere = project(tmp_path / "below" / "second in another place")
    second = execute(planned(elsewhere, any_toolchain, "O3", ".")).read_bytes()
    assert compiled == []
    assert second == first


def test_headers_that_are_not_read_do_not_count(tmp_path: Path, compiled: list[str]) -> None:
    execute(planned(project(tmp_path / "first")))
    second = project(tmp_path / "second")
    (second / "include" / "model.h").write_text("#error not for main.c\n")
    compiled.clear()
    execute(planned(second))
    assert compiled == []


@pytest.mark.parametrize("place", ["before", "include"])
def test_a_header_that_a_source_looks_for_counts(tmp_path: Path, compiled: list[str], place: str) -> None:
    main = (
        '#include "part.h"\nint main(void)\n{\n#if __has_include("extra.h")\n    return 9;\n#endif\n    return 0;\n}\n'
    )
    folder = project(tmp_path / "project", main)
    (folder / "before").mkdir()
    first = execute(planned(folder, None, "O3", "before")).read_bytes()
    compiled.clear()
    (folder / place / "extra.h").write_text("")
    assert execute(planned(folder, None, "O3", "before")).read_bytes() != first
    assert "main.o" in compiled


def test_both_of_two_projects_that_read_different_files_are_kept(tmp_path: Path, compiled: list[str]) -> None:
    """Their sources and commands are the same, and only a header differs, which includes another one."""
    for name in ("other", "another"):
        folder = project(tmp_path / name, part=f'#include "{name}.h"\n')
        (folder / "include" / f"{name}.h").write_text(f"#define PART {len(name)}\n")
        execute(planned(folder))
    compiled.clear()
    assert execute(planned(tmp_path / "other")).read_bytes() != execute(planned(tmp_path / "another")).read_bytes()
    assert compiled == []


Change = Callable[[Path], object]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: project(folder, main=MAIN.replace("PART;", "PART + 1;")), id="source"),
        pytest.param(lambda folder: project(folder, part="#define PART 1\n"), id="header"),
        pytest.param(
            lambda folder: (folder / "part.h").write_text("#define PART 2\n"), id="a header beside the source"
        ),
        pytest.param(
            lambda folder: (folder / "before" / "part.h").write_text("#define PART 3\n"),
            id="a header in another folder",
        ),
    ],
)
def test_a_change_is_compiled(tmp_path: Path, compiled: list[str], change: Change) -> None:
    folder = project(tmp_path / "project")
    (folder / "before").mkdir()
    first = execute(planned(folder, None, "O3", "before")).read_bytes()
    compiled.clear()
    change(folder)
    second = execute(planned(folder, None, "O3", "before")).read_bytes()
    assert compiled == ["main.o", "unfinished-firmware.elf"]
    assert second != first
    compiled.clear()
    assert execute(planned(folder, None, "O3", "before")).read_bytes() == second
    assert compiled == []


def test_a_file_that_changes_during_the_build_is_compiled_again(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path / "project")
    run = build.Commands.run

    def interfering(self: build.Commands, argv: tuple[str, ...]) -> None:
        run(self, argv)
        if argv[-1].endswith("main.o"):
            project(folder, part="#define PART 7\n")

    monkeypatch.setattr(build.Commands, "run", interfering)
    first = execute(planned(folder)).read_bytes()
    monkeypatch.setattr(build.Commands, "run", run)
    compiled.clear()
    assert execute(planned(folder)).read_bytes() != first
    assert compiled == ["main.o", "unfinished-firmware.elf"]


def test_another_command_is_another_object(tmp_path: Path, compiled: list[str]) -> None:
    folder = project(tmp_path / "project")
    execute(planned(folder))
    compiled.clear()
    execute(planned(folder, None, "Os"))
    assert "main.o" in compiled


def test_a_variable_of_the_compiler_counts(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path / "project")
    execute(planned(folder))
    compiled.clear()
    monkeypatch.setenv("CPATH", str(tmp_path))
    execute(planned(folder))
    assert "main.o" in compiled


def test_a_damaged_entry_is_made_anew(tmp_path: Path, cache: Path, compiled: list[str]) -> None:
    first = execute(planned(project(tmp_path / "first"))).read_bytes()
    for entry in cache.iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])
    compiled.clear()
    assert execute(planned(project(tmp_path / "second"))).read_bytes() == first
    assert {"main.o", "unfinished-firmware.elf"} < set(compiled)


def test_an_object_that_names_its_folder_is_not_kept(tmp_path: Path, compiled: list[str]) -> None:
    """The program contains its source file's path, which must be that of its own project."""
    main = "int main(void)\n{\n    const char *volatile file = __FILE__;\n    return file[0];\n}\n"
    for name in ("first", "second"):
        folder = project(tmp_path / name, main)
        plan = plan_build(
            SourceSet(sources=[folder / "main.c"]), load_board("mps2-an386"), toolchain("zig"), folder / "build"
        )
        compiled.clear()
        assert f"{folder}/main.c".encode() in execute(plan).read_bytes()
        assert "main.o" in compiled


@pytest.mark.parametrize("home", [None, "/dev/null"])
def test_without_a_home_the_toolchain_works_in_a_private_folder(
    home: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "FERRULE_CACHE", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    if home is None:
        monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user without an entry in /etc/passwd
    else:
        monkeypatch.setenv("HOME", home)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = project(tmp_path / "project")
    code = SourceSet(sources=[folder / "main.c"], include_dirs=[folder / "include"])
    plan = plan_build(code, load_board("mps2-an386"), toolchain("zig"), folder / "build", startup=False)
    assert execute(plan).is_file()
    (private,) = tmp_path.glob("ferrule-cache-*")
    assert {path.name for path in private.iterdir()} >= {"objects", "zig"}


def test_without_space_for_the_cache_everything_is_compiled(tmp_path: Path, cache: Path, compiled: list[str]) -> None:
    cache.parent.mkdir()
    cache.write_text("not a folder")
    for name in ("first", "second"):
        compiled.clear()
        assert execute(planned(project(tmp_path / name))).is_file()
        assert "main.o" in compiled


def test_names_in_the_rule_for_make() -> None:
    rule = "objects/a.o: /p/a.c \\\n  /p/a\\ b.h /p/c$$d.h \\\n /p/e\\#f.h\n"
    assert object_cache.prerequisites(rule) == ["/p/a.c", "/p/a b.h", "/p/c$d.h", "/p/e#f.h"]
