# SPDX-License-Identifier: Apache-2.0
"""The compiled C hooks and their cache."""

from __future__ import annotations

import ctypes
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from children import ran
from needs import require_module, require_program

from ferrule import nativelib
from ferrule.architectures import CORTEX_M
from ferrule.emulation.unicorn import library
from ferrule.errors import FerruleError

pytestmark = pytest.mark.cc


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host_cc: tuple[str, ...]) -> Path:
    """An empty cache folder, and the host's own compiler."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    monkeypatch.setenv("FERRULE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CC", shlex.join(host_cc))
    return tmp_path / "cache"


def refuse(*_arguments: object) -> None:
    """Stand in for a compiler that must not be called."""
    raise AssertionError("compiled again")


def test_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = library.compiled_hooks(CORTEX_M.model)
    assert first.parent == cache / "libraries"
    monkeypatch.setattr(nativelib.NativeLibrary, "_compile", refuse)
    assert library.compiled_hooks(CORTEX_M.model) == first


def test_processes_that_begin_together_compile_once(
    cache: Path, host_cc: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrapper, log = tmp_path / "mycc", tmp_path / "log"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >>"{log}"\nexec {shlex.join(host_cc)} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CC", str(wrapper))
    program = (
        "from ferrule.architectures import CORTEX_M; from ferrule.emulation.unicorn.library import compiled_hooks; "
        "print(compiled_hooks(CORTEX_M.model))"
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    paths = {each.communicate(timeout=300)[0] for each in running}
    assert [each.returncode for each in running] == [0, 0, 0]
    assert len(paths) == 1
    sources = [line.split()[-1] for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(sources) > 3
    assert len(sources) == len(set(sources))


@pytest.mark.nightly
def test_damaged_library_is_rebuilt(cache: Path) -> None:
    built = library.compiled_hooks(CORTEX_M.model)
    built.write_bytes(built.read_bytes()[:4000])
    assert library.compiled_hooks(CORTEX_M.model) == built
    assert ctypes.CDLL(str(built)).ferrule_guest_count


@pytest.mark.nightly
def test_another_compiler_is_another_file(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = library.compiled_hooks(CORTEX_M.model)
    wrapper = tmp_path / "mycc"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.join(nativelib.host_compiler("a test"))} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CC", str(wrapper))
    assert library.compiled_hooks(CORTEX_M.model) != first


def test_failing_compiler_is_quoted(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho out of cheese >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CC", str(broken))
    with pytest.raises(FerruleError, match=r"(?s)ended with 3.*out of cheese"):
        library.compiled_hooks(CORTEX_M.model)
    assert [path for path in cache.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("compiler", ["gcc", "zig"])
def test_hooks_compile_without_a_warning(compiler: str, tmp_path: Path) -> None:
    if compiler == "zig":
        require_module("ziglang", "pip install 'ferrule[run]'")
        command = [sys.executable, "-m", "ziglang", "cc"]
    else:
        command = [require_program("gcc", "apt-get install gcc")]
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-c", "-fPIC"]
    own = CORTEX_M.model.hooks
    folders = {library.SOURCE_FOLDER: library.SOURCES, own.folder: own.sources}
    sources = [source for folder in folders for source in sorted(folder.glob("*.c"))]
    assert [source.stem for source in sources] == [name for names in folders.values() for name in sorted(names)]
    argv = [*command, *flags, *(f"-I{folder}" for folder in folders), *(str(source) for source in sources)]
    done = ran(argv, timeout=300, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
