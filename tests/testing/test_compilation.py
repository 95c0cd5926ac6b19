# SPDX-License-Identifier: Apache-2.0
"""The cache of C that is compiled for tests, and that of programs over the Arm Compute Library, notice each input."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from needs import require_cc

from ferrule.acl import program
from ferrule.acl.toolchain import AclToolchain
from ferrule.testing.compilation import HostBuild

Change = Callable[[Path, pytest.MonkeyPatch], object]
CHANGES: dict[str, Change] = {
    "source": lambda folder, _: (folder / "answer.c").write_text(
        "int answer(void);\nint answer(void) { return 43; }\n"
    ),
    "header": lambda folder, _: (folder / "answer.h").write_text("#define ANSWER 44\n", "utf-8"),
    "compiler": lambda folder, patch: patch.setenv("CC", str(shutil.copy(folder / "cc", folder / "another"))),
    "upgrade": lambda folder, _: (folder / "cc").write_text((folder / "cc").read_text("utf-8") + "# newer\n", "utf-8"),
    "include path": lambda folder, patch: patch.setenv("CPATH", str(folder)),
    "parts of the compiler": lambda folder, patch: patch.setenv("COMPILER_PATH", str(folder)),
}


@pytest.mark.cc
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_input_is_compiled_again(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = shlex.join(require_cc())
    monkeypatch.setenv("FERRULE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cc").write_text(f'#!/bin/sh\nexec {compiler} "$@"\n', encoding="utf-8")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    source = tmp_path / "answer.c"
    source.write_text('#include "answer.h"\nint answer(void);\nint answer(void) { return ANSWER; }\n', "utf-8")
    (tmp_path / "answer.h").write_text("#define ANSWER 42\n", encoding="utf-8")

    def made() -> Path:
        build = HostBuild(title="answer", sources=(source,), fakes=(), headers=("answer.h",), include_dirs=(tmp_path,))
        return build.object_of(source)

    first = made()
    assert made() == first
    CHANGES[change](tmp_path, monkeypatch)
    assert made() != first


def test_the_key_of_a_program_over_the_library_has_each_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, header = tmp_path / "g++", tmp_path / "trace.h"
    compiler.write_text("#!/bin/sh\n", encoding="utf-8")
    header.write_text("int a;\n", encoding="utf-8")
    tools = AclToolchain(
        compiler=(str(compiler),),
        compile_flags=(),
        link_flags=(),
        launcher=(),
        version="24.11",
        emulated=True,
        opencl=False,
    )

    def key(facts: tuple[str, ...] = (), given: AclToolchain = tools) -> str:
        return program._key([], tmp_path, [tmp_path], facts, given)

    first = key()
    assert key() == first
    seen = {first, key(("-O1",)), key(given=replace(tools, version="20.08"))}
    seen.add(key(given=replace(tools, environment={"LD_LIBRARY_PATH": "/elsewhere"})))
    with monkeypatch.context() as patch:
        patch.setenv("CPLUS_INCLUDE_PATH", "/elsewhere")
        seen.add(key())
    compiler.write_text("#!/bin/sh\n# newer\n", encoding="utf-8")
    seen.add(key())
    header.write_text("int b;\n", encoding="utf-8")
    seen.add(key())
    assert len(seen) == 7
