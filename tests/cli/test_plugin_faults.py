# SPDX-License-Identifier: Apache-2.0
"""Commands with a backend that ends the process, interrupts it or prints: the report is whole, or there is an error."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from children import ran

Ferrule = Callable[..., Any]
BACKEND = """
import ctypes, os, signal, sys
from ferrule.backends.backend import Support
from ferrule.backends.cpu_acc import CpuAcc

{module}

class Guilty(CpuAcc):
    id = "Guilty"

    def layer_support(self):
        return self

    def supports(self, graph, layer, target):
        {supports}
        return Support()

    def {method}(self, *arguments, **keywords):
        {body}
        return super().{method}(*arguments, **keywords)
"""


def write_backend(
    folder: Path, *, module: str = "", supports: str = "pass", method: str = "unused", body: str = "pass"
) -> None:
    """Write a backend and a ferrule.toml which names its folder."""
    (folder / "ferrule.toml").write_text('[backends]\nfolders = ["guilty"]\n')
    (folder / "guilty").mkdir()
    (folder / "guilty" / "backend.toml").write_text('id = "Guilty"\nfactory = "guilty:Guilty"\n')
    text = BACKEND.format(module=module, supports=supports, method=method, body=body)
    (folder / "guilty" / "__init__.py").write_text(text)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; a package that a test imports from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "guilty", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"supports": "sys.exit(0)"}, "backend 'Guilty' failed in supports() for layer 'add_0' (ADD): SystemExit: 0"),
        ({"supports": "raise KeyboardInterrupt"}, "backend 'Guilty' failed in supports() for layer 'add_0' (ADD): Key"),
        ({"module": "sys.exit(0)"}, "guilty) cannot be used: SystemExit: 0"),
        ({"module": "raise KeyboardInterrupt"}, "guilty) cannot be used: KeyboardInterrupt"),
        ({"method": "firmware_target", "body": "sys.exit(0)"}, "SystemExit"),
    ],
    ids=["exit", "interrupt", "exit at import", "interrupt at import", "exit elsewhere"],
)
def test_a_backend_that_ends_the_command_is_an_error(
    ferrule: Ferrule, two_by_two: Path, project: Path, parts: dict[str, str], reason: str
) -> None:
    write_backend(project, **parts)
    outcome = ferrule("generate", two_by_two, "--backends", "Guilty", "--out", "out")
    assert (outcome.code, outcome.out) == (2, "")
    assert reason in outcome.err
    assert "guilty" in outcome.err.lower()


def test_a_command_that_is_ended_names_the_file(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.firmware.probe_tools", lambda: sys.exit(0))
    outcome = ferrule("doctor")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"error: the command ended before its result: SystemExit(0) from {__file__}:" in outcome.err


def test_a_real_interrupt_in_a_backend_is_the_users(ferrule: Ferrule, two_by_two: Path, project: Path) -> None:
    write_backend(project, supports="signal.raise_signal(signal.SIGINT)")
    outcome = ferrule("inspect", two_by_two, "--backends", "Guilty")
    assert (outcome.code, outcome.out) == (130, "")
    assert "interrupted" in outcome.err


def test_an_exit_by_a_signals_handler_keeps_its_code(
    ferrule: Ferrule, two_by_two: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_backend(project, supports="signal.raise_signal(signal.SIGTERM)")
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        assert ferrule("inspect", two_by_two, "--backends", "Guilty").code == 143
    finally:
        signal.signal(signal.SIGTERM, before)


NOISE = "print('noise'); os.write(1, b'noise'); os.system('echo noise'); ctypes.CDLL(None).puts(b'noise')"


def test_output_of_a_backend_goes_to_standard_error(ferrule: Ferrule, two_by_two: Path, project: Path) -> None:
    write_backend(project, module=NOISE, supports=NOISE)
    outcome = ferrule("inspect", two_by_two, "--backends", "Guilty", "--json")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)["division"]["backends"][0]["id"] == "Guilty"
    assert "noise" in outcome.err


def test_output_of_a_backend_in_a_process_of_its_own(two_by_two: Path, project: Path) -> None:
    """Standard output is the descriptor 1 here, and C's buffers are flushed when the process ends."""
    write_backend(project, module=NOISE, supports=NOISE)
    command = [sys.executable, "-m", "ferrule", "inspect", str(two_by_two), "--backends", "Guilty", "--json"]
    done = ran(command, env=os.environ | {"NO_COLOR": "1"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["division"]["backends"][0]["id"] == "Guilty"
    assert done.stderr.count("noise") > 3


def test_commands_print_their_reports_through_one_function() -> None:
    """Standard output is reserved while a command runs, so plain `click.echo` would print to standard error."""
    import ferrule.cli

    for path in Path(ferrule.cli.__file__).parent.glob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "click.echo(" in line and path.name not in {"console.py", "main.py"}:
                assert "err=True" in line, f"{path.name}: {line.strip()}: print reports by ferrule.cli.console.echo"
