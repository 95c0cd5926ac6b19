# SPDX-License-Identifier: Apache-2.0
"""`--limit`: every command has it, its errors are one line with the option that helps, and evaluate's number stays."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from children import ran
from onnx_models import model, node

from ferrule.budget import DEFAULTS, Resource, current
from ferrule.cli.main import _COMMANDS, cli

Ferrule = Callable[..., Any]
ROOT = Path(__file__).parents[2]


def leaves(command: click.Command) -> list[click.Command]:
    inner = command.commands.values() if isinstance(command, click.Group) else ()
    return [leaf for each in inner for leaf in leaves(each)] or [command]


@pytest.mark.parametrize("name", sorted(_COMMANDS))
def test_every_command_has_it_once(name: str) -> None:
    first, command = (cli.get_command(click.Context(cli), name) for _ in range(2))
    assert first is command is not None
    for leaf in leaves(command):
        (option,) = [each for each in leaf.params if "--limit" in each.opts]
        assert isinstance(option, click.Option)
        assert "docs/commands.md#limits" in str(option.help)
        assert option.multiple


def test_the_page_states_the_defaults() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    section = page.split("## Limits\n")[1].split("\n## ")[0]
    for resource, limit in DEFAULTS.items():
        (row,) = [line for line in section.splitlines() if line.startswith(f"| `{resource}`")]
        assert f"2^{limit.bit_length() - 1}" in row
        assert limit == 1 << limit.bit_length() - 1


def test_the_error_is_one_with_the_option_that_helps(ferrule: Ferrule, dense: Path) -> None:
    size = dense.stat().st_size
    outcome = ferrule("inspect", dense, "--limit", "bytes=100")
    assert outcome.code == 2
    error, hint = outcome.err.splitlines()
    assert error.endswith(f"{dense.name} takes {size:,} bytes of memory, and the limit is 100")
    assert hint == f"hint: if the input is right, raise the limit: --limit bytes={size}"
    assert ferrule("inspect", dense, "--limit", "bytes=1MiB,elements=100").code == 0
    assert current().limits == DEFAULTS


@pytest.mark.parametrize("text", ["", "bytes", "bytes=", "bytes=-1", "bytes=1TB", "seconds=3", "bytes=1,bytes=2"])
def test_a_wrong_limit_is_named(ferrule: Ferrule, dense: Path, text: str) -> None:
    outcome = ferrule("inspect", dense, "--limit", text)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder with samples and labels for `dense`."""
    np.save(tmp_path / "x.npy", np.zeros((20, 6), np.int8))
    np.save(tmp_path / "y.npy", np.zeros(20, np.int64))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.cc
@pytest.mark.parametrize(
    ("given", "samples"),
    [
        ((), 20),
        (("--limit", "5"), 5),
        (("--limit", "5", "--limit", "bytes=1MiB"), 5),
        (("--limit", "bytes=1MiB", "--limit", "elements=1Mi"), 20),
    ],
)
def test_evaluate_takes_a_number_of_samples_too(
    ferrule: Ferrule, dense: Path, data: Path, given: tuple[str, ...], samples: int
) -> None:
    call = ("evaluate", dense, "--data", "x.npy", "--labels", "y.npy", "-q", "--json", "e.json")
    assert ferrule(*call, *given).code == 0
    assert json.loads((data / "e.json").read_text())["data"]["samples"] == samples


@pytest.mark.parametrize("given", [("--limit", "0"), ("--limit", "x"), ("--limit", "1", "--limit", "2")])
def test_a_wrong_number_of_samples_is_named(ferrule: Ferrule, dense: Path, data: Path, given: tuple[str, ...]) -> None:
    assert ferrule("evaluate", dense, "--data", "x.npy", *given).code == 2


@pytest.mark.cc
def test_what_a_run_computes_is_refused_before_it_begins(ferrule: Ferrule, tmp_path: Path) -> None:
    path = tmp_path / "mm.onnx"
    path.write_bytes(
        model(
            [node("MatMul", "x z", "y")], {"x": ("float32", [30, 40]), "z": ("float32", [40, 50])}
        ).SerializeToString()
    )
    np.savez(tmp_path / "x.npz", x=np.zeros((30, 40), np.float32), z=np.zeros((40, 50), np.float32))
    call = ("evaluate", path, "--data", tmp_path / "x.npz", "-q")
    refused = ferrule(*call, "--limit", "multiplications=59999")
    assert refused.code == 2
    assert "takes 60,000 multiplications, and the limit is 59,999" in refused.err
    assert "--limit multiplications=59Ki" in refused.err
    assert ferrule(*call, "--limit", "multiplications=60000").code == 3  # it ran, and nothing was compared


def test_memory_that_the_machine_lacks_is_no_bug(
    ferrule: Ferrule, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 26.8 GiB")

    monkeypatch.setattr("ferrule.formats.load", lacking)
    outcome = ferrule("inspect", dense)
    assert outcome.code == 2
    assert "error: this machine has not enough memory: Unable to allocate 26.8 GiB" in outcome.err
    assert "Traceback" not in outcome.err


WITHIN = """
import re, resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
from ferrule.cli import main
try:
    main(sys.argv[1:])
finally:
    status = Path("/proc/self/status").read_text()  # getrusage's peak is also that of the process that started this one
    print("peak", int(re.search(r"VmHWM:\\s*(\\d+) kB", status)[1]) >> 10)
"""


def test_a_file_of_empty_nodes_takes_little_memory(tmp_path: Path) -> None:
    """20 MB of nodes of two bytes, which would be ten million objects."""
    graph = bytes([10, 0]) * 10_000_000
    path = tmp_path / "empty.onnx"
    size = len(graph)
    length = b"".join(bytes([size >> shift & 127 | (128 if size >> shift > 127 else 0)]) for shift in range(0, 28, 7))
    path.write_bytes(b"\x08\x09\x42\x02\x10\x11\x3a" + length + graph)
    done = ran(
        [sys.executable, "-c", WITHIN, "inspect", str(path)],
        timeout=600,
        env=dict(os.environ),
    )
    assert done.returncode == 2, done.stderr
    error, hint = done.stderr.splitlines()
    assert "empty.onnx: the file's fields, such as nodes and attributes, takes" in error
    assert f"the limit is {DEFAULTS[Resource.BYTES]:,}" in error
    assert "--limit bytes=" in hint
    assert int(done.stdout.split()[-1]) < 500
