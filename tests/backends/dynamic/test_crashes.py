# SPDX-License-Identifier: Apache-2.0
"""A shared object that ends the process later than in the trial is named on standard error, by crash_note.c."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from children import ran

pytestmark = pytest.mark.cc
STRUCK = "SIGABRT, which another process sent, in"
PROGRAM = """
import faulthandler, json, os, sys
from pathlib import Path
from ferrule import DataType, Network, TensorInfo
from ferrule.backends.context import CreationOptions
from ferrule.backends.registry import BackendRegistry
from ferrule.optimizer import explain, OptimizerOptions
from ferrule.runtime import Runtime

faulthandler.enable()
network = Network("net")
network.add_input(TensorInfo(name="x", shape=(2,), dtype=DataType.FLOAT32))
network.set_outputs([network.add_relu_layer("x", name="relu")])

def ask(folder):
    with Runtime(CreationOptions(dynamic_backends_path=Path(folder)), BackendRegistry()) as runtime:
        explain(network, [runtime.registry.create("Valid")], OptimizerOptions())

*others, last = sys.argv[1:]
for folder in others:
    child = os.fork()
    if child == 0:
        ask(folder)
        os._exit(0)
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)
ask(last)
"""


def run(*folders: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *map(str, folders)]
    return ran(command, timeout=100)


def test_a_crash_names_the_backend_and_the_question(tmp_path: Path, compile_backend: Callable[..., Path]) -> None:
    paths = []
    for defect in ("WELL", "CRASH", "ABORT", "CRASH_IN_A_THREAD", "STRUCK", "LEAVE_WELL"):
        (tmp_path / defect).mkdir()
        paths.append(compile_backend(tmp_path / defect, f"AT_SUPPORTS={defect if defect != 'WELL' else ''}"))
    done = run(*(path.parent for path in paths))
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        0,
        -signal.SIGSEGV,
        -signal.SIGABRT,
        -signal.SIGSEGV,
        -signal.SIGABRT,
    ]
    assert done.returncode == 2, "the exit code of an error, although the backend calls exit(0)"
    said = [line for line in done.stderr.splitlines() if line.startswith("ferrule:")]
    hows = ("SIGSEGV in", "SIGABRT in", "SIGSEGV in a thread of its own, during", STRUCK, "exit() in")
    assert said == [
        f"ferrule: the process ends by {how} layer_support.supports() of backend 'Valid' ({path}), "
        "for backend 'Valid', supports() for layer 'relu' (RELU)"
        for how, path in zip(hows, paths[1:], strict=True)
    ]
    assert done.stderr.count("Fatal Python error") == 4, "the handlers of the application run, too"


def test_without_a_compiler_crashes_are_not_named(
    tmp_path: Path, compile_backend: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_backend(tmp_path, "AT_SUPPORTS=CRASH")
    monkeypatch.setenv("CC", "no-such-compiler")
    done = run(tmp_path)
    assert (done.returncode, "ferrule:" in done.stderr) == (-signal.SIGSEGV, False)
