# SPDX-License-Identifier: Apache-2.0
"""The C hooks: compiled on first use, kept in the user's cache, loaded into this process."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ferrule import resources
from ferrule.emulation.crash import EngineError
from ferrule.emulation.unicorn import layout
from ferrule.errors import FerruleError, MissingToolError

FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared", *(() if sys.platform == "darwin" else ("-nostdlib",)))
"""Without a C library, which the hooks don't need: zig would build its own first, for seconds."""
COMPILE_TIMEOUT_S = 300


def cache_folder() -> Path:
    """Return where compiled hooks are kept: $FERRULE_CACHE, else `ferrule` in the user's cache folder."""
    own = os.environ.get("FERRULE_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ferrule"


def host_compiler() -> tuple[str, ...]:
    """Return the command that compiles C for this host: $CC, else cc, gcc or clang, else the ziglang wheel.

    Raises:
        MissingToolError: there is none.
    """
    named = shlex.split(os.environ.get("CC", ""))
    for command in ([named] if named else []) + [["cc"], ["gcc"], ["clang"]]:
        program = shutil.which(command[0])
        if program is not None:
            return (program, *command[1:])
    if find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise MissingToolError(
        "no C compiler for this host was found, which the unicorn engine needs once",
        hint="pip install ziglang (or install gcc)",
    )


def _compiler_identity(command: tuple[str, ...]) -> str:
    """Return what changes when the compiler does, without running it."""
    if "ziglang" in command:
        return f"ziglang {importlib.metadata.version('ziglang')}"
    program = Path(command[0]).resolve()
    status = program.stat()
    return f"{program} {status.st_size} {status.st_mtime_ns}"


def _key(folder: Path, command: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("unicorn_hooks.*")):
        digest.update(path.read_bytes())
    facts = (
        *command,
        *FLAGS,
        _compiler_identity(command),
        importlib.metadata.version("unicorn"),
        sys.platform,
        platform.machine(),
    )
    digest.update("\0".join(facts).encode())
    return digest.hexdigest()[:32]


def _compile(source: Path, target: Path, command: tuple[str, ...]) -> None:
    argv = [*command, *FLAGS, "-o", str(target), str(source)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"can't compile the unicorn hooks: {error}", hint="set CC to a working C compiler") from error
    if done.returncode != 0:
        last = "\n".join(done.stderr.splitlines()[-20:])
        raise EngineError(
            f"can't compile the unicorn hooks: {shlex.join(argv)} ended with {done.returncode}\n{last}",
            hint="set CC to a working C compiler, or pip install ziglang",
        )


def _write_atomically(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def compiled_hooks() -> Path:
    """Return the shared library, compiled anew unless the cache has it whole.

    A file beside it holds its hash, so that a truncated or changed library is never loaded.
    """
    folder = resources.root() / "src_c" / "emulation"
    command = host_compiler()
    kept = cache_folder()
    library = kept / f"unicorn_hooks_{_key(folder, command)}.so"
    checksum = library.with_suffix(".sha256")
    try:
        if hashlib.sha256(library.read_bytes()).hexdigest() == checksum.read_text(encoding="ascii"):
            return library
    except (OSError, UnicodeDecodeError):
        pass  # not there, or unreadable: the same remedy
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept) as scratch:
            fresh = Path(scratch) / "unicorn_hooks.so"
            _compile(folder / "unicorn_hooks.c", fresh, command)
            data = fresh.read_bytes()
        _write_atomically(library, data)
        _write_atomically(checksum, hashlib.sha256(data).hexdigest().encode())
    except OSError as error:
        raise FerruleError(
            f"can't keep the compiled unicorn hooks in {kept}: {error.strerror or error}",
            hint="set FERRULE_CACHE to a folder that you may write",
        ) from error
    return library


def _check_layout(library: ctypes.CDLL) -> None:
    for function, mirror in (
        ("ferrule_guest_bytes", layout.GuestState),
        ("ferrule_cycle_counter_bytes", layout.CycleCounterState),
        ("ferrule_uart_bytes", layout.UartState),
    ):
        size = getattr(library, function)
        size.restype = ctypes.c_uint64
        if size() != ctypes.sizeof(mirror):
            raise EngineError(f"{mirror.__name__} differs from the C hooks: {ctypes.sizeof(mirror)} and {size()} B")


@cache
def load_hooks() -> ctypes.CDLL:
    """Return the loaded hooks."""
    path = compiled_hooks()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise EngineError(f"can't load the compiled unicorn hooks: {error}", hint=f"remove {path.parent}") from error
    _check_layout(library)
    library.ferrule_guest_executed.restype = ctypes.c_uint64
    library.ferrule_guest_executed.argtypes = (ctypes.POINTER(layout.GuestState), ctypes.c_uint32)
    library.ferrule_cycle_counter_enable.restype = None
    library.ferrule_cycle_counter_enable.argtypes = (ctypes.POINTER(layout.CycleCounterState), ctypes.c_uint32)
    return library
