# SPDX-License-Identifier: Apache-2.0
"""Vela, Arm's compiler for Ethos-U, run in a process of its own; its results are cached."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from ferrule.backends.ethos_u.settings import Settings
from ferrule.cache import Store
from ferrule.errors import FerruleError, MissingToolError
from ferrule.scratch import ScratchFolder

REMEDY = "pip install 'ferrule[ethos-u]'"
PACKAGE = "ethos-u-vela"
_FORMAT = 1
"""Part of the digests: raise it if the results that are kept change their form."""
_CHILD = Path(__file__).with_name("vela_child.py")
_LAST_LINES = 20


class VelaError(FerruleError):
    """Vela did not finish, or wrote something unexpected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VelaResult:
    """What Vela made of one model."""

    error: str
    """Empty if Vela succeeded."""
    log: str
    """Everything that it printed."""
    npz: bytes = b""
    """Its raw output; empty after an error."""
    summary: str = ""
    """Its summary as CSV; empty after an error."""
    database: str = ""
    """Its debug database as XML; empty unless it was asked for."""


@cache
def vela_version() -> str:
    """Return the version of the installed Vela.

    Raises:
        MissingToolError: it is not installed.
    """
    from importlib.metadata import PackageNotFoundError, version
    from importlib.util import find_spec

    try:
        found = version(PACKAGE) if find_spec("ethosu") is not None else None
    except PackageNotFoundError:
        found = None
    if found is None:
        raise MissingToolError(
            "the Python package ethos-u-vela is missing, the compiler for EthosU (Ethos-U55 and U65)", hint=REMEDY
        )
    return found


def run_vela(
    models: Sequence[bytes], settings: Settings, *, timeout_s: int, database: bool = False
) -> tuple[VelaResult, ...]:
    """Return Vela's results for models as .tflite files, in their order.

    A model on which Vela fails or dies has an `error`. All of them are compiled by one process, except that those after
    a death get another one. Results are kept in the cache folder, except deaths. `database` asks for the debug
    database.

    Raises:
        MissingToolError: Vela is not installed.
        VelaError: a process has not finished after `timeout_s` seconds, or has not started.
    """
    store = Store("ethos_u")
    digests = [_digest(model, settings, database=database) for model in models]
    found: dict[str, VelaResult] = {}
    wanted: dict[str, bytes] = {}
    for digest, model in zip(digests, models, strict=True):
        kept = store.get(digest)
        if kept is not None:
            found[digest] = msgspec.msgpack.decode(kept, type=VelaResult)
        else:
            wanted[digest] = model
    while wanted:
        results = _run(list(wanted.values()), settings, timeout_s, database=database)
        for digest, (result, lasting) in zip(list(wanted), results, strict=False):
            found[digest] = result
            del wanted[digest]
            if lasting:
                store.keep(digest, msgspec.msgpack.encode(result))
    store.prune()
    return tuple(found[digest] for digest in digests)


def _digest(model: bytes, settings: Settings, *, database: bool) -> str:
    what = [_FORMAT, vela_version(), settings.arguments(), settings.config_text, database]
    digest = hashlib.sha256(json.dumps(what).encode() + b"\0")
    digest.update(model)
    return digest.hexdigest()


def _run(
    models: Sequence[bytes], settings: Settings, timeout_s: int, *, database: bool
) -> list[tuple[VelaResult, bool]]:
    """Return the results of one process, at least one, and for each whether it would be the same again."""
    with ScratchFolder() as scratch:
        folder = scratch.path
        jobs = list(_jobs(folder, models, settings, database=database))
        (folder / "jobs").write_text("".join(json.dumps(job) + "\n" for job in jobs), encoding="utf-8")
        began = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-W", "ignore", str(_CHILD), str(folder / "jobs")],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise VelaError(
                f"Vela has not finished after {time.monotonic() - began:.0f} s, with {len(models)} models to compile",
                hint="set the option timeout_s of backend EthosU to more",
            ) from error
        except OSError as error:
            raise VelaError(f"Vela cannot be started: {error.strerror or error}") from error
        answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
        results = [(_result(folder, index, answer, database=database), True) for index, answer in enumerate(answers)]
        if len(results) < len(models):
            words = _log(folder, len(results)) or done.stderr.decode(errors="replace")
            if not _log_of(folder, len(results)).exists():  # it ended before the first model
                raise VelaError(f"Vela ended with {_end(done.returncode)} before it began: {last_lines(words)}")
            error_ = f"Vela ended with {_end(done.returncode)}"
            results.append((VelaResult(error=error_, log=words), False))
        return results


def _jobs(folder: Path, models: Sequence[bytes], settings: Settings, *, database: bool) -> Iterator[list[str]]:
    for index, model in enumerate(models):
        path = folder / f"{index}" / "model.tflite"
        path.parent.mkdir()
        path.write_bytes(model)
        more = ["--enable-debug-db"] if database else []
        output = ["--output-format", "raw", "--output-dir", str(path.parent / "out"), *more]
        yield [str(_log_of(folder, index)), str(path), *settings.arguments(), *output]


def _log_of(folder: Path, index: int) -> Path:
    return folder / f"{index}" / "log"


def _log(folder: Path, index: int) -> str:
    path = _log_of(folder, index)
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _result(folder: Path, index: int, error: str, *, database: bool) -> VelaResult:
    log = _log(folder, index)
    if error:
        return VelaResult(error=error, log=log)
    output = folder / f"{index}" / "out"
    try:
        (summary,) = output.glob("model_summary_*.csv")
        return VelaResult(
            error="",
            log=log,
            npz=(output / "model_vela.npz").read_bytes(),
            summary=summary.read_text(encoding="utf-8"),
            database=(output / "model_debug.xml").read_text(encoding="utf-8") if database else "",
        )
    except (OSError, ValueError) as missing:
        raise VelaError(
            f"Vela {vela_version()} has not written the files that are expected of it ({missing}): {last_lines(log)}"
        ) from missing


def last_lines(text: str) -> str:
    """Return the last lines of an output that are not empty, in one line; a sentence if there are none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-_LAST_LINES:]) or "it says nothing"


def _end(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"
