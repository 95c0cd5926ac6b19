# SPDX-License-Identifier: Apache-2.0
"""Tries shared objects in child processes, so that a defective one cannot affect this process."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ferrule.backends.device import BackendId
from ferrule.backends.dynamic.report import LoadReport, Reason
from ferrule.child_process import ending, kill

TIMEOUT_S = 10.0
"""Time limit, in seconds, for loading a file and getting its answers."""

_CHILD = Path(__file__).with_name("probe_child.py")
_LARGEST_REPORT_BYTES = 65_536
"""What a pipe of Linux holds: it is read when the child has ended, and reports are much shorter."""

_Key = tuple[str, int, int, int, int]
_known: dict[_Key, LoadReport] = {}
_lock = threading.Lock()


def probe_all(paths: list[Path], *, timeout_s: float = TIMEOUT_S) -> list[LoadReport]:
    """Return the report on each file, in order; several children run concurrently."""
    if not paths:
        return []
    with ThreadPoolExecutor(max_workers=min(4, len(paths)), thread_name_prefix="ferrule-probe") as pool:
        return list(pool.map(lambda path: probe(path, timeout_s=timeout_s), paths))


def probe(path: Path, *, timeout_s: float = TIMEOUT_S) -> LoadReport:
    """Return the report on a canonical file; an unchanged file is not tried again."""
    report = LoadReport(path=path, canonical=path)
    try:
        status = path.stat()
    except OSError as error:
        return replace(report, reason=Reason.UNREADABLE, message=f"it cannot be reached: {error.strerror}")
    key = (str(path), status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)
    with _lock:
        known = _known.get(key)
    if known is None:
        known = _run_child(report, timeout_s)
        if known.reason not in {Reason.TIMED_OUT, Reason.NOT_PROBED}:  # of which the machine may be the cause
            with _lock:
                _known[key] = known
    return known


def _run_child(report: LoadReport, timeout_s: float) -> LoadReport:
    if not sys.executable:
        return replace(report, reason=Reason.NOT_PROBED, message="sys.executable is not set")
    reader, writer = os.pipe()
    try:
        os.set_blocking(reader, False)  # this process has the writing end, too, so the pipe has no end to wait for
        # without site-packages and PYTHON* variables, which could end the child before it opens the file
        command = [sys.executable, "-I", "-S", str(_CHILD), str(report.path), str(writer)]
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(writer,),
                start_new_session=True,
            )
        except OSError as error:
            message = f"no child process could be started: {error}"
            return replace(report, reason=Reason.NOT_PROBED, message=message)
        code = _wait(child, timeout_s)
        return _judge(report, _read_lines(reader), code, timeout_s)
    finally:
        os.close(reader)
        os.close(writer)


def _wait(child: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """Return the exit code; None if the child exceeded the limit and was killed."""
    try:
        return child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # The child leads its own process group, so the processes that it started are killed with it.
        kill(child)
        child.wait()


def _read_lines(descriptor: int) -> list[dict[str, Any]]:
    try:
        text = os.read(descriptor, _LARGEST_REPORT_BYTES)
    except BlockingIOError:
        return []
    lines: list[dict[str, Any]] = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            lines.append(dict(json.loads(line)))
    return lines


def _judge(report: LoadReport, lines: list[dict[str, Any]], code: int | None, timeout_s: float) -> LoadReport:
    step = next((str(line["step"]) for line in reversed(lines) if "step" in line), "starting")
    report = replace(report, backend=next((BackendId(str(line["id"])) for line in lines if "id" in line), None))
    last = lines[-1] if lines else {}
    if "refused" in last:
        return replace(report, reason=Reason(last["refused"]), message=str(last["message"]))
    if code is None:
        return replace(report, reason=Reason.TIMED_OUT, message=f"{step} took longer than {timeout_s:g} s")
    if last.get("done") and code == 0:
        return report
    if not lines:  # it has not yet opened the file
        message = f"the child process that tries it ended with {ending(code)}"
        return replace(report, reason=Reason.NOT_PROBED, message=message)
    reason = Reason.CRASHED if code < 0 else Reason.EXITED
    return replace(report, reason=reason, message=f"{step} ended the process with {ending(code)}")
