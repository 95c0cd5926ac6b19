# SPDX-License-Identifier: Apache-2.0
"""Checks that each backend of a network accesses only the tensors that are its own at that time, on the host."""

from __future__ import annotations

import os
import pickle
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ferrule._frozen import frozen
from ferrule.backends.context import CreationOptions
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.child_process import CommandError, last_lines, run
from ferrule.errors import FerruleError, NothingComparedError
from ferrule.graph import Array
from ferrule.network.execution import check_inputs
from ferrule.optimizer.optimized import OptimizedNetwork

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from ferrule.testing.ownership_child import main; main(int(sys.argv[2]))"
)
_VERBS = {"wrote": "which it may only read at that time", "accessed": "which is not its own at that time"}


class OwnershipError(FerruleError):
    """A backend accessed memory that was not its own, or used bytes that were never written."""


@frozen
class OwnershipReport:
    """The tensors that a check covered."""

    checked: tuple[str, ...]
    """Tensors on pages of their own."""
    unchecked: tuple[str, ...]
    """Tensors in memory of a backend whose handles import no memory of the process."""


@frozen
class Reply:
    """What the child process writes if no forbidden access ends it."""

    report: OwnershipReport | None = None
    kind: str = ""
    """The type of an exception; "" for a report."""
    message: str = ""
    hint: str | None = None


def check_ownership(
    optimized: OptimizedNetwork,
    inputs: Sequence[Array] | Mapping[str, Array],
    *,
    registry: Callable[[], BackendRegistry] = default_registry,
    options: CreationOptions | None = None,
    timeout_s: float = 300,
) -> OwnershipReport:
    """Run a network twice in a child process, in which only the tensors of the layers at work can be accessed.

    Args:
        optimized: the network.
        inputs: arrays in order or by name.
        registry: a top-level function, or a partial application of one, that returns the registry of a runtime.
        options: creation options of the runtime, which can be pickled.
        timeout_s: limit of the seconds in which the child works or sleeps.

    Raises:
        OwnershipError: the message names the tensor, the layer and the backend.
        NothingComparedError: no tensor could be checked.
        InputError: an array does not fit the network.
        MissingToolError: there is no C compiler.
        FerruleError: this is not Linux, an argument cannot be passed to another process, or the network does not run.
    """
    if sys.platform != "linux":
        raise FerruleError(f"the check of ownership needs memfds, which are of Linux; this is {sys.platform}")
    arrays = check_inputs(optimized.graph, inputs)
    try:
        request = pickle.dumps((optimized, arrays, registry, options or CreationOptions()))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise FerruleError(
            f"the check of ownership cannot pass its arguments to a child process: {error}",
            hint="let `registry` be a top-level function of a module, and the options without open files and locks",
        ) from error
    with tempfile.TemporaryFile() as reply:
        command = [sys.executable, "-c", _PROGRAM, msgspec.json.encode(sys.path).decode(), str(reply.fileno())]
        try:
            done = run(command, timeout_s, given=request, check=False, pass_fds=(reply.fileno(),), together=True)
        except CommandError as error:
            raise FerruleError(f"the check of ownership failed: {error}") from error
        reply.seek(0)
        return _result(reply.read(), done)


def _result(data: bytes, done: subprocess.CompletedProcess[str]) -> OwnershipReport:
    """Return the report of a child process; raises as `check_ownership` does."""
    text = data.decode(errors="replace")
    if not text.startswith("{"):
        lines = text.splitlines()
        if len(lines) == 3 and lines[1] in _VERBS:
            note, verb, label = lines
            raise OwnershipError(f"{note} {verb} {label}, {_VERBS[verb]}")
        printed = "\n".join(last_lines(done.stdout))
        ending = f"{shlex.join(done.args[:2])} ended with {done.returncode}"
        raise FerruleError(f"the check of ownership ended without a result: {ending}{os.linesep}{printed}")
    reply = msgspec.json.decode(data, type=Reply)
    if reply.report is not None:
        if not reply.report.checked:
            raise NothingComparedError(
                "the check of ownership has checked no tensor: all are in memory of backends whose handles import none",
                hint=f"unchecked: {', '.join(reply.report.unchecked) or 'the network has no tensors'}",
            )
        return reply.report
    if reply.kind == OwnershipError.__name__:
        raise OwnershipError(reply.message, hint=reply.hint)
    raise FerruleError(f"the check of ownership failed: {reply.kind}: {reply.message}", hint=reply.hint)
