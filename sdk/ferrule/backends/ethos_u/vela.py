# SPDX-License-Identifier: Apache-2.0
"""Vela, Arm's compiler for Ethos-U, run in a process of its own; its results are cached."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.ethos_u.settings import Settings
from ferrule.cache import Store
from ferrule.errors import FerruleError, MissingToolError
from ferrule.kept_process import KeptDiedError, KeptProcess
from ferrule.reading import exists, list_folder, read_bytes, read_text
from ferrule.scratch import ScratchFolder

REMEDY = "pip install 'ferrule[ethos-u]'"
PACKAGE = "ethos-u-vela"
_FORMAT = 2
"""Part of the digests: raise it if the results that are kept change their form."""
_LAST_LINES = 20
_SETTINGS = ("ConfigOptionError", "CliOptionError", "Vela ended with exit code 2")
"""What the errors of Vela begin with that concern its options, not the model."""

_WARNING = re.compile(
    r"^Warning \(supported operators\) operator: (?P<type>\S+), ofm: '(?P<tensor>.*)'\n"
    r"Reason: (?P<reason>.*(?:\n(?!\n|Warning|\w+:).+)*)",
    re.MULTILINE,
)
_ACTIVATION = "_act"
"""What Vela appends to the name of a tensor before a fused activation."""
_UNKNOWN = "Unsupported opType"


class VelaError(FerruleError):
    """Vela did not finish, or wrote something unexpected."""


@frozen
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


def vela_facts() -> tuple[str, ...]:
    """Return all that Vela's results depend on beside its settings and the model; raises as `vela_version`.

    That are its version, the digests of its installed files, numpy's version and Python's.
    """
    return (vela_version(), _installed_files(), np.__version__, sys.version)


@cache
def _installed_files() -> str:
    from importlib.metadata import distribution

    files = distribution(PACKAGE).files or ()  # with the hashes that were recorded when it was installed
    text = "\n".join(f"{each} {each.hash.value if each.hash else ''}" for each in files)
    return hashlib.sha256(text.encode()).hexdigest()


def run_vela(
    models: Sequence[bytes], settings: Settings, *, timeout_s: int, database: bool = False
) -> tuple[VelaResult, ...]:
    """Return Vela's results for models as .tflite files, in their order.

    A model on which Vela fails or dies has an `error`. Results are kept in the cache folder, except deaths. `timeout_s`
    is for each model, and `database` asks for the debug database.

    Raises:
        MissingToolError: Vela is not installed.
        VelaError: Vela refuses its settings, does not finish in time, cannot be started, or writes other files than
            expected.
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
    for digest, model in wanted.items():
        found[digest], lasting = _run(model, settings, timeout_s, database=database)
        if lasting:
            store.keep(digest, msgspec.msgpack.encode(found[digest]))
    store.prune()
    return tuple(found[digest] for digest in digests)


def _digest(model: bytes, settings: Settings, *, database: bool) -> str:
    what = [_FORMAT, *vela_facts(), settings.arguments(), settings.config_text, database]
    digest = hashlib.sha256(json.dumps(what).encode() + b"\0")
    digest.update(model)
    return digest.hexdigest()


def _run(model: bytes, settings: Settings, timeout_s: int, *, database: bool) -> tuple[VelaResult, bool]:
    """Return the result for one model, and whether it would be the same again."""
    with ScratchFolder() as scratch:
        path, log = scratch.path / "model.tflite", scratch.path / "log"
        path.write_bytes(model)
        more = ["--enable-debug-db"] if database else []
        output = ["--output-format", "raw", "--output-dir", str(scratch.path / "out"), *more]
        try:
            error = vela_process().run(log, [str(path), *settings.arguments(), *output], timeout_s)
        except KeptDiedError as death:
            return VelaResult(error=f"Vela ended with {death}", log=_text(log)), False
        except TimeoutError as late:
            raise VelaError(
                f"Vela has not compiled a model of {len(model):,} B within {timeout_s} s: {last_lines(_text(log))}",
                hint="set the option timeout_s of backend EthosU to more",
            ) from late
        except OSError as error_:
            raise VelaError(f"Vela cannot be started: {error_.strerror or error_}") from error_
        if error.startswith(_SETTINGS):
            raise VelaError(
                f"Vela refuses its settings ({' '.join(settings.arguments())}): {error}",
                hint="change the options memory_mode, system_config, arena_cache_bytes or config_file of EthosU",
            )
        return _result(scratch.path / "out", error, _text(log), database=database), True


@cache
def vela_process() -> KeptProcess:
    """Return the process of Vela that all of this process shares, since Vela starts slowly."""
    return KeptProcess(Path(__file__).with_name("vela_child.py"))


def _text(log: Path) -> str:
    return read_text(log, errors="replace") if exists(log) else ""


def _result(output: Path, error: str, log: str, *, database: bool) -> VelaResult:
    if error:
        return VelaResult(error=error, log=log)
    try:
        (summary,) = list_folder(output, "model_summary_*.csv")
        return VelaResult(
            error="",
            log=log,
            npz=read_bytes(output / "model_vela.npz"),
            summary=read_text(summary),
            database=read_text(output / "model_debug.xml") if database else "",
        )
    except (OSError, ValueError) as missing:
        raise VelaError(
            f"Vela {vela_version()} has not written the files that are expected of it ({missing}): {last_lines(log)}"
        ) from missing


def last_lines(text: str) -> str:
    """Return the last lines of an output that are not empty, in one line; a sentence if there are none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-_LAST_LINES:]) or "it says nothing"


def reasons_of(result: VelaResult) -> Mapping[str, str]:
    """Return Vela's reasons for leaving operators to the core, by the name of the tensor that each writes in the model.

    A reason is what Vela says about this operator, with the constraint of Vela if that has a single line.
    """
    reasons: dict[str, str] = {}
    for match in _WARNING.finditer(result.log):
        first, *constraint = (" ".join(line.split()).rstrip(".:") for line in match["reason"].splitlines())
        tensor = match["tensor"].removesuffix(_ACTIVATION)
        if first == _UNKNOWN:
            reasons.setdefault(tensor, "Vela has no such operator for the NPU")
            continue
        text = "; ".join([first, *constraint]) if len(constraint) == 1 else first
        reasons.setdefault(tensor, f"Vela leaves {match['type']} to the core: {text}")
    return reasons
