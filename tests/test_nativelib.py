# SPDX-License-Identifier: Apache-2.0
"""The search for this host's C compiler."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from children import ran
from needs import require_cc, require_module

from ferrule import nativelib
from ferrule.errors import MissingToolError
from ferrule.firmware import probe
from ferrule.nativelib import CompilationError, NativeLibrary, host_compiler, zig_compiler

ZIG = (sys.executable, "-m", "ziglang", "cc")


def program(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\necho a compiler 1.2.3\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the only one on PATH; CC is not set."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    return tmp_path


def test_cc_on_the_path_comes_first(bare: Path) -> None:
    program(bare, "clang")
    gcc = program(bare, "gcc")
    assert host_compiler("a test") == (str(gcc),)
    cc = program(bare, "cc")
    assert host_compiler("a test") == (str(cc),)


def test_the_variable_comes_before_the_path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bare, "cc")
    mine = program(bare, "mycc")
    monkeypatch.setenv("CC", "mycc -m32 '-DNAME=a b'")
    assert host_compiler("a test") == (str(mine), "-m32", "-DNAME=a b")
    monkeypatch.setenv("CC", "")
    assert host_compiler("a test") == (str(bare / "cc"),)


@pytest.mark.parametrize("nonsense", ["nonsense", "/no/such/cc -O2", "cc 'without an end", "   "])
def test_a_variable_that_names_no_program_is_an_error(
    bare: Path, monkeypatch: pytest.MonkeyPatch, nonsense: str
) -> None:
    """It would be a surprise to get a compiler other than the one requested."""
    program(bare, "cc")
    monkeypatch.setenv("CC", nonsense)
    with pytest.raises(MissingToolError) as caught:
        host_compiler("the unicorn engine")
    assert str(caught.value).startswith(f"CC is '{nonsense}', which is not a program")
    assert "the unicorn engine" in str(caught.value)
    assert "unset it" in (caught.value.hint or "")
    row = probe._probe_host_compiler()
    assert (row.found, row.remedy) == (False, caught.value.hint)


@pytest.mark.usefixtures("bare")
def test_ziglang_serves_where_no_compiler_is() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    assert host_compiler("a test") == zig_compiler("cc")
    assert host_compiler("a test")[:4] == ZIG
    row = probe._probe_host_compiler()
    assert row.found
    assert row.version is not None
    assert row.version.startswith("clang version ")
    assert " -m ziglang cc" in row.version


@pytest.mark.parametrize(
    ("system", "machine", "libc", "target"),
    [
        ("linux", "x86_64", "glibc 2.36", ("-target", "x86_64-linux-gnu.2.28")),
        ("linux", "aarch64", "glibc 2.36", ("-target", "aarch64-linux-gnu.2.28")),
        ("linux", "x86_64", None, ("-target", "x86_64-linux-musl")),
        ("linux", "s390x", "glibc 2.36", ()),
        ("darwin", "arm64", None, ()),
    ],
)
def test_zig_is_told_the_target(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, libc: str | None, target: tuple[str, ...]
) -> None:
    monkeypatch.setattr(nativelib.sys, "platform", system)
    monkeypatch.setattr(nativelib.platform, "machine", lambda: machine)
    monkeypatch.setattr(nativelib.os, "confstr", lambda _name: libc, raising=False)
    assert zig_compiler("c++") == (sys.executable, "-m", "ziglang", "c++", "-fno-sanitize=undefined", *target)


def test_a_c_library_without_a_version_is_not_glibc(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise ValueError(name)

    monkeypatch.setattr(nativelib.os, "confstr", unknown, raising=False)
    assert not nativelib._has_glibc()


@pytest.mark.usefixtures("bare")
def test_without_any_both_remedies_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nativelib, "find_spec", lambda _name: None)
    with pytest.raises(MissingToolError, match="no C compiler for this host was found; a test needs one") as caught:
        host_compiler("a test")
    assert "apt-get install gcc" in (caught.value.hint or "")
    assert "pip install 'ferrule[run]'" in (caught.value.hint or "")


@pytest.mark.cc
def test_what_ziglang_compiles_is_loaded(bare: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    source = bare / "answer.c"
    source.write_text(
        '#include <signal.h>\n#include <stdlib.h>\nint answer(void) { return atoi("42") + SIGFPE; }\n',
        encoding="utf-8",
    )
    library = NativeLibrary(name="answer", title="answer", purpose="a test", sources=(source,), flags=("-O2",))
    assert ctypes.CDLL(str(library.file())).answer() == 42 + signal.SIGFPE


def test_zig_has_its_own_headers_on_linux() -> None:
    """Those of the host may be missing."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    command = [*zig_compiler("cc"), "-E", "-v", "-x", "c", os.devnull]
    searched = ran(command, check=True).stderr.split()
    assert ("/usr/include" in searched) == (sys.platform != "linux")


@pytest.mark.cc
def test_the_same_files_elsewhere_are_compiled_once(tmp_path: Path) -> None:
    require_cc()
    announced: list[str] = []
    first, second = (
        answering(tmp_path / folder).file(lambda folder=folder: announced.append(folder))
        for folder in ("first", "second")
    )
    assert first == second
    assert ctypes.CDLL(str(first)).answer() == 42
    assert announced == ["first"]


def answering(folder: Path) -> NativeLibrary:
    """Return a library of a source and a header; two calls return the same."""
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("answer.c", '#include "answer.h"\nint answer(void) { return ANSWER; }\n'),
        ("answer.h", "#define ANSWER 42\n"),
    ):
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")
    source, header = folder / "answer.c", folder / "answer.h"
    return NativeLibrary(
        name="answer", title="answer", purpose="a test", sources=(source,), headers=(header,), include_dirs=(folder,)
    )


Change = Callable[[Path, pytest.MonkeyPatch], object]
CHANGES: dict[str, Change] = {
    "source": lambda folder, _: (folder / "answer.c").write_text("int answer(void) { return 43; }\n", "utf-8"),
    "header": lambda folder, _: (folder / "answer.h").write_text("#define ANSWER 44\n", "utf-8"),
    "compiler": lambda folder, patch: patch.setenv("CC", str(shutil.copy(folder / "cc", folder / "another"))),
    "upgrade": lambda folder, _: (folder / "cc").write_text((folder / "cc").read_text("utf-8") + "# newer\n", "utf-8"),
    "option": lambda folder, patch: patch.setenv("CC", f"{folder / 'cc'} -O1"),
    "include path": lambda folder, patch: patch.setenv("CPATH", str(folder)),
    "parts of the compiler": lambda folder, patch: patch.setenv("COMPILER_PATH", str(folder)),
    "C library": lambda _, patch: patch.setattr(nativelib.platform, "libc_ver", lambda: ("glibc", "9.99")),
}


def compiler(folder: Path) -> Path:
    """Write a program that runs the host's compiler."""
    path = folder / "cc"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(require_cc())} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.cc
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_input_is_compiled_again(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "sources"
    folder.mkdir()
    monkeypatch.setenv("CC", str(compiler(folder)))
    built: list[str] = []
    for each in ("first", "again"):
        answering(folder).file(lambda each=each: built.append(each))
    CHANGES[change](folder, monkeypatch)
    answering(folder).file(lambda: built.append("changed"))
    assert built == ["first", "changed"]


DECLARATIONS = """
#include <stdint.h>
/* struct other { int32_t gone; }; */
struct part {
    int8_t kind, more[3]; // in 4 bytes
    const double *values;
};
struct whole {
    int32_t count;
    struct part part, parts[2];
    const uint8_t *first, *last; /**< pointers */
};
uint64_t size(void);
int16_t kind_of(const struct whole *whole, uint32_t index);
const uint8_t *last_of(const struct whole *whole);
"""
DEFINITIONS = """
uint64_t size(void) { return sizeof(struct whole); }
int16_t kind_of(const struct whole *whole, uint32_t index) { return whole->parts[index].kind * whole->part.more[2]; }
const uint8_t *last_of(const struct whole *whole) { return whole->last; }
"""


@pytest.mark.cc
def test_structs_and_functions_are_those_of_the_header(tmp_path: Path) -> None:
    library = answering(tmp_path)
    library.headers[0].write_text(DECLARATIONS, encoding="utf-8")
    library.sources[0].write_text(f'#include "answer.h"\n{DEFINITIONS}', encoding="utf-8")
    functions, structs = library.functions(), nativelib.structs(library.headers[0])
    assert (sorted(functions), sorted(structs)) == (["kind_of", "last_of", "size"], ["part", "whole"])
    whole = structs["whole"](last=1 << 40)
    whole.part.more[2], whole.parts[1].kind = -3, 100
    pointer = ctypes.addressof(whole)
    assert functions["size"]() == ctypes.sizeof(whole)
    assert (functions["kind_of"](pointer, 1), functions["last_of"](pointer)) == (-300, 1 << 40)


@pytest.mark.parametrize("member", ["int32_t taps[TAPS]", "int32_t (*function)(void)", "uint32_t bit : 1"])
def test_a_member_of_another_form_is_a_bug(member: str, tmp_path: Path) -> None:
    header = tmp_path / "odd.h"
    header.write_text(f"struct odd {{ int32_t first; {member}; }};", encoding="utf-8")
    with pytest.raises(RuntimeError, match=rf"odd\.h: the member '{re.escape(member)}' of odd cannot be read"):
        nativelib.structs(header)


@pytest.mark.cc
def test_a_header_that_is_not_declared_is_a_bug(tmp_path: Path) -> None:
    require_cc()
    library = replace(answering(tmp_path / "sources"), headers=())
    with pytest.raises(RuntimeError, match=r"the answer include .*answer\.h, which the library does not declare"):
        library.file()


@pytest.mark.cc
def test_what_the_found_command_compiles_runs(tmp_path: Path) -> None:
    source = tmp_path / "program.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("fine") < 0; }\n', encoding="utf-8")
    subprocess.run([*require_cc(), str(source), "-o", str(tmp_path / "program")], check=True)
    done = ran([str(tmp_path / "program")], check=True)
    assert done.stdout == "fine\n"


def test_doctor_names_the_command(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(program(bare, "mycc"), bare / "cc")
    for value, shown in (("", "[cc]"), ("mycc -m32", "[mycc -m32]")):
        monkeypatch.setenv("CC", value)
        row = probe._probe_host_compiler()
        assert row.version == f"a compiler 1.2.3 {shown}"
        assert row.path == str(bare / (shlex.split(value) or ["cc"])[0])
        assert os.access(row.path, os.X_OK)


@pytest.mark.cc
def test_units_are_compiled_in_place_of_the_sources_and_errors_name_the_source(tmp_path: Path) -> None:
    require_cc()
    for name, text in {"one": "int one(void) { return 1; }\n", "two": "int two(void) { return ONE + 1; }\n"}.items():
        (tmp_path / f"{name}.c").write_text(text, encoding="utf-8")

    def library(*units: str) -> NativeLibrary:
        return NativeLibrary(
            name="numbers",
            title="numbers",
            purpose="a test",
            sources=(tmp_path / "one.c", tmp_path / "two.c"),
            include_dirs=(tmp_path,),
            units=lambda: units,
        )

    with pytest.raises(CompilationError, match=r"two\.c:1"):
        library('#include "one.c"\n#include "two.c"\n').file()
    loaded = ctypes.CDLL(str(library('#include "one.c"\n', '#define ONE 1\n#include "two.c"\n').file()))
    assert (loaded.one(), loaded.two()) == (1, 2)
