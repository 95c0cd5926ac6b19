# SPDX-License-Identifier: Apache-2.0
"""Runs tests again with sanitizers in the C, in a separate process that loads the sanitizer first."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ferrule.child_process import CommandError, run
from ferrule.errors import FerruleError, MissingToolError
from ferrule.nativelib import host_compiler, is_zig
from ferrule.testing.adapter import SANITIZE
from ferrule.testing.compilation import PRELOADED, check_sanitizers

_CHILD = "ferrule.testing.sanitized_child"


class SanitizerError(FerruleError):
    """A sanitizer, or the test itself, stopped the process; the message contains its output."""


def run_sanitized(
    what: Callable[[], object] | str | Path | Sequence[str],
    *,
    sanitizers: Sequence[str] = ("address", "undefined"),
    timeout_s: float = 300,
) -> str:
    """Run a test in a child process whose builds have sanitizers, and return its output.

    Args:
        what: a top-level function of a module, without arguments; or a target for pytest: a path, a test's name
            (`tests/test_npu.py::test_race`), or several arguments.
        sanitizers: any of "address", "undefined" and "thread"; "address" and "thread" exclude each other.
        timeout_s: limit of the seconds in which the child works or sleeps.

    Raises:
        SanitizerError: a sanitizer reported an error, a test failed, or the time limit expired.
        MissingToolError: the compiler has no such sanitizer.
    """
    environment = {**os.environ, **sanitizer_environment(sanitizers)}
    if callable(what):
        command = [sys.executable, "-m", _CHILD, what.__code__.co_filename, what.__name__]
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    else:
        chosen = [str(what)] if isinstance(what, str | Path) else [*what]
        # output of C must not go to a file that is lost when a sanitizer ends the process
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--capture=sys", *chosen]
    try:
        done = run(command, timeout_s, check=False, environment=environment)
    except CommandError as error:
        raise SanitizerError(str(error)) from error
    if done.returncode != 0:
        written = "\n".join([*done.stdout.splitlines()[-30:], *_of_interest(done.stderr)])
        raise SanitizerError(f"{shlex.join(command)} ended with {done.returncode}\n{written}")
    return done.stdout


def sanitizer_environment(sanitizers: Sequence[str]) -> dict[str, str]:
    """Return the environment in which a Python process can load builds with sanitizers.

    Raises:
        FerruleError: a sanitizer is unknown.
        MissingToolError: the compiler lacks a sanitizer's library.
    """
    check_sanitizers(sanitizers or ["(none was named)"])
    environment = {SANITIZE: ",".join(sanitizers)}
    libraries = [_library(f"{PRELOADED[name]}.so") for name in sanitizers if name in PRELOADED]
    if libraries:
        environment["LD_PRELOAD"] = ":".join(libraries)
        # Python itself does not free all memory at exit; the slow unwinder may crash in the frames of libffi
        environment["ASAN_OPTIONS"] = "detect_leaks=0:fast_unwind_on_fatal=1"
        environment["PYTHONMALLOC"] = "malloc"
    environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
    return environment


def _library(name: str) -> str:
    compiler = host_compiler("sanitizers")
    if is_zig(compiler):  # zig finds gcc's library, which does not match the code that zig compiles
        raise MissingToolError(f"{shlex.join(compiler)} has no {name}, the sanitizer's library", hint="set CC to gcc")
    command = [*compiler, f"-print-file-name={name}"]
    done = run(command, 60, check=False)
    path = Path(done.stdout.strip())
    if done.returncode != 0 or not path.is_absolute():
        raise MissingToolError(f"{shlex.join(command)} does not find the sanitizer's library", hint="set CC to gcc")
    return str(path)


def _of_interest(text: str) -> list[str]:
    """Return the lines from the first sanitizer message on; a long report is cut."""
    lines = text.splitlines()
    first = next((at for at, line in enumerate(lines) if "ERROR: " in line or "runtime error" in line), 0)
    return lines[first : first + 40]
