# SPDX-License-Identifier: Apache-2.0
"""Leases of real boards: a place of labgrid that is held for a limited time and always released."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ferrule.errors import FerruleError
from ferrule.evaluation.sweep import lease_keeper
from ferrule.evaluation.sweep.file import LeaseEntry

__all__ = ["LeaseEntry", "LeaseError", "leased"]


class LeaseError(FerruleError):
    """A place could not be acquired or released, or was held longer than its limit."""


@contextmanager
def leased(entry: LeaseEntry | None) -> Iterator[None]:
    """Hold a place during the block; None holds nothing.

    Another process acquires and releases the place, so it is released even if this process is killed. It is also
    released when the limit has passed, and then the block's result cannot be relied on: another user may have had the
    board meanwhile.

    Raises:
        LeaseError: the place is not free in time, the block took longer than the limit, or the place was not released.
    """
    if entry is None:
        yield
        return
    keeper = _Keeper(entry)
    try:
        keeper.wait_until_held()
        yield
    except BaseException:
        keeper.end()
        raise
    said = keeper.end()
    if said.get("state") == "expired":
        raise LeaseError(
            f"the run took longer than the {entry.limit_s:g} s for which it may hold place {entry.place}",
            hint="raise limit_s of the lease",
        )
    if said.get("state") != "released" or said.get("reason"):
        raise LeaseError(
            f"place {entry.place} was not released: {said.get('reason') or 'the process that holds it has ended'}",
            hint=f"{' '.join(entry.command)} -p {entry.place} release",
        )


class _Keeper:
    """The process that holds a place."""

    def __init__(self, entry: LeaseEntry) -> None:
        self._entry = entry
        process = subprocess.Popen(
            [sys.executable, str(Path(lease_keeper.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C must not end it before the place is released
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._stdin.write(msgspec.json.encode(entry).decode() + "\n")
        self._stdin.flush()

    def wait_until_held(self) -> None:
        """Return when the place is held; LeaseError if it is not in time."""
        said = self._next()
        if said.get("state") != "held":
            reason = said.get("reason") or "the process that was to hold it has ended"
            raise LeaseError(f"place {self._entry.place} was not acquired: {reason}")

    def end(self) -> dict[str, str]:
        """Let the place be released, and return the last message of the process."""
        with self._process:
            self._stdin.close()
            return self._next()

    def _next(self) -> dict[str, str]:
        line = self._stdout.readline()
        return json.loads(line) if line else {}
