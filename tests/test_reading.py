# SPDX-License-Identifier: Apache-2.0
"""The gateway to files: what is no regular file, what leads out of a folder, and readers that go around it."""

from __future__ import annotations

import ast
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule import reading
from ferrule.reading import IrregularFileError, OutsideError, confined, open_file, read_bytes, read_text

PACKAGE = Path(__file__).parents[1] / "sdk" / "ferrule"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


def socket_file(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = {"a pipe": pipe, "a link to a pipe": link_to_a_pipe, "a socket": socket_file, "a device": device}


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_opened(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    path = Path("it")
    KINDS[kind](path)
    for read in (open_file, read_bytes, read_text):
        with pytest.raises(IrregularFileError) as caught:
            read(path)
        assert caught.value.strerror == f"it is {kind.removeprefix('a link to ')}, expected a regular file"
    assert not reading.is_file(path)
    assert not reading.is_folder(path)
    assert reading.exists(path)
    assert reading.files_below(Path()) == []


def test_a_pipe_that_replaces_a_file_does_not_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"")
    status = path.stat()
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(Path, "stat", lambda self: status)
    with pytest.raises(IrregularFileError):
        open_file(path)


def test_folders_and_absent_files_are_the_systems_errors(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "absent")
    with pytest.raises(ValueError, match="null"):
        open_file(tmp_path / "a\0b")


def test_regular_files_and_links_to_them_are_read(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"one\r\ntwo\rthree\n")
    (tmp_path / "link").symlink_to("it")
    assert read_bytes(tmp_path / "link") == b"one\r\ntwo\rthree\n"
    assert read_text(tmp_path / "link") == "one\ntwo\nthree\n"
    assert read_bytes(tmp_path / "link", within=tmp_path) == read_bytes(tmp_path / "it")


@pytest.mark.parametrize("target", ["../outside", "../inside/../outside", "/etc/passwd", "loop/../../outside"])
def test_a_link_out_of_the_folder_is_refused(target: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "outside").write_bytes(b"")
    (inside / "loop").symlink_to(".")
    (inside / "it").symlink_to(target)
    with pytest.raises(OutsideError, match="it leads out of"):
        open_file(inside / "it", within=inside)
    with pytest.raises(OutsideError):
        confined(inside / target, inside)


def test_a_folder_that_is_a_link_itself_is_one_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "it").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    assert read_bytes(tmp_path / "link" / "it", within=tmp_path / "link") == b"x"
    assert read_bytes(tmp_path / "link" / "it", within=tmp_path / "real") == b"x"


def test_folders_are_listed_in_order_and_without_caches(tmp_path: Path) -> None:
    for name in ("b.h", "a.h", "c.c", "inner/d.h", "__pycache__/e.h"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "inner" / "up").symlink_to("..")
    assert reading.list_folder(tmp_path, "*.h") == [tmp_path / "a.h", tmp_path / "b.h"]
    assert reading.list_folder(tmp_path, "*/") == [tmp_path / "inner"]
    assert reading.files_below(tmp_path, "*.h") == [tmp_path / name for name in ("a.h", "b.h", "inner/d.h")]
    assert reading.files_below(tmp_path / "absent") == []
    assert reading.list_folder(tmp_path / "absent") == []
    with pytest.raises(NotADirectoryError):
        reading.list_folder(tmp_path / "b.h")


# --- readers that go around the gateway ---

READERS = {
    *("open", "read_bytes", "read_text", "iterdir", "glob", "rglob", "is_file", "is_dir", "exists"),
    *("listdir", "scandir", "walk", "load", "fromfile", "memmap", "copyfile", "copytree"),
    *("genfromtxt", "loadtxt", "compile_file", "isfile", "isdir"),
}
"""Names of functions and methods that read files or ask for them."""
OWN = "its own output, which is no input: "
ALLOWED = {
    "record.py": "the record itself",
    "reading.py": "the gateway itself",
    "trust.py": "asks for owners, and reads what the kernel says",
    "resources.py": "finds the folder of Ferrule's own files",
    "scratch.py": OWN + "temporary files",
    "cache.py": OWN + "the cache; entries are read by the gateway",
    "cli/console.py": "the null device",
    "cli/init.py": OWN + "the folder of a new project",
    "cli/main.py": "the null device",
    "cli/new.py": OWN + "the folder of a new backend or board",
    "cli/outputs.py": OWN + "reports",
    "devices/rdl.py": "systemrdl-compiler opens what the file includes",
    "evaluation/data/array_files.py": "maps and unpacks what the gateway has opened",
    "evaluation/data/images.py": "decodes what the gateway has opened",
    "evaluation/data/sounds.py": "decodes what the gateway has opened",
    "evaluation/sweep/inputs.py": OWN + "the records of a sweep; they are read by the gateway",
    "evaluation/sweep/lease_keeper.py": "the null device",
    "evaluation/sweep/plan.py": "finds models by a pattern; the models are read by the gateway",
    "evaluation/sweep/results.py": OWN + "the rows of a sweep",
    "firmware/build.py": OWN + "a firmware",
    "firmware/seal.py": "a program of its own that imports nothing of Ferrule",
    "firmware/folder.py": OWN + "a project",
    "firmware/project.py": OWN + "a build",
    "firmware/platforms/zephyr_tools.py": "asks a tree for boards, before its own tools build",
    "backends/manifest.py": "finds files by patterns; their folders are noted, and the files are read by the gateway",
    "backends/dynamic/abi.py": "is imported by a program without the rest of Ferrule",
    "backends/dynamic/paths.py": "asks for the owners of shared objects",
    "backends/dynamic/probe_child.py": "a program of its own that imports nothing of Ferrule",
    "backends/shared/allocators.py": "allocates memory by a device",
    "quantization/library.py": OWN + "what the child has written",
    "quantization/library_child.py": OWN + "the files of the request",
    "quantization/search/trials_file.py": OWN + "appends trials; they are read by the gateway",
    "kept_child.py": OWN + "the log of a request",
    "kept_process.py": OWN + "the log of a request",
    "child_process.py": "reads what the kernel says of a child process",
    "emulation/renode/process.py": OWN + "the folder of Renode's process",
    "emulation/renode/project_files.py": OWN + "files for Renode",
    "emulation/renode/script.py": OWN + "the folder of Renode's process",
    "timing/core_timing.py": "finds Ferrule's own tables",
    "timing/evidence.py": "finds Ferrule's own tables",
    "timing/planned.py": "finds Ferrule's own tables",
    "testing/adapter.py": "compiles the sources of a test",
    "testing/backends/fallback.py": "reads what the kernel says of this process",
}
"""Modules that use these names otherwise, with the reason."""
GATEWAY = {"reading", "record", "msgspec", "json", "tomllib", "ctypes", "cffi", "formats"}


def modules() -> Iterator[Path]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if "tests" not in path.relative_to(PACKAGE).parts:
            yield path


def around(path: Path) -> list[str]:
    """Return the calls of a module that read files without the gateway."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ferrule")
        for alias in node.names
    }
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return [found for node in ast.walk(tree) if (found := _reader(node, imported, defined))]


def _reader(node: ast.AST, imported: set[str], defined: set[str]) -> str:
    if not isinstance(node, ast.Call):
        return ""
    match node.func:
        case ast.Name(id=name) if name in READERS - {"load", "walk"} - imported - defined:
            return f"line {node.lineno}: {name}"
        case ast.Attribute(attr="walk" | "load" as name, value=ast.Name(id=owner)):
            return f"line {node.lineno}: {owner}.{name}" if owner in {"os", "np", "numpy", "json"} else ""
        case ast.Attribute(attr="walk" | "load"):
            return ""
        case ast.Attribute(attr=name, value=owner) if name in READERS:
            known = isinstance(owner, ast.Name) and owner.id in GATEWAY
            return "" if known else f"line {node.lineno}: .{name}"
    return ""


def test_readers_use_the_gateway() -> None:
    names = {path: path.relative_to(PACKAGE).as_posix() for path in modules()}
    wrong = [f"{name}: {place}" for path, name in names.items() if name not in ALLOWED for place in around(path)]
    assert not wrong, "read by ferrule.reading, or add the module with its reason"


def test_each_exception_is_needed() -> None:
    assert [name for name in ALLOWED if not around(PACKAGE / name)] == []


@pytest.mark.parametrize(
    "text",
    [
        "open(path)",
        "path.read_bytes()",
        "Path(a).read_text()",
        "np.load(path)",
        "np.fromfile(path)",
        "os.open(path, 0)",
        "os.walk(path)",
        "shutil.copyfile(a, b)",
        "folder.glob('*')",
        "path.exists()",
        "Image.open(path)",
    ],
)
def test_a_reader_around_the_gateway_is_noticed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "reader.py"
    path.write_text(f"def reader(path):\n    return {text}\n", encoding="utf-8")
    assert around(path)


def test_the_gateways_functions_are_not_noticed(tmp_path: Path) -> None:
    path = tmp_path / "reader.py"
    names = "exists, is_file, read_bytes"
    path.write_text(
        f"from ferrule.reading import {names}\nexists(p) or is_file(p) or read_bytes(p) or pickle.load(p)\n",
        encoding="utf-8",
    )
    assert around(path) == []
