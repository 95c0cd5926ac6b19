# SPDX-License-Identifier: Apache-2.0
"""What commands print: nothing that a CI runner obeys, and no traceback where a stream is closed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from children import ran
from gate import some_of

from ferrule import formats
from ferrule.cache import cache_folder
from ferrule.cli.console import log_safe
from ferrule.errors import FerruleError, place, visible, without_commands
from ferrule.graph import DataType, TensorInfo
from ferrule.network import Network

FERRULE = f"{shlex.quote(sys.executable)} -m ferrule"
OBEYED = re.compile(r"^\s*::|##\[|##vso\[|##teamcity\[", re.MULTILINE | re.IGNORECASE)
COMMANDS = (
    "::error::x", "  ::set-output name=a::b", "\n::add-mask::x", "a\n\t::stop-commands::t", "##[error]x",
    "name ##[add-path]/tmp", "##vso[task.setvariable variable=PATH]x", "x##VSO[task.complete]", "###[error]",
    "##teamcity[buildStop comment='x']", "a\r\n::warning file=a::b", "\x85::notice::x", "\u2028::debug::x",
)  # fmt: skip


@pytest.mark.parametrize("text", COMMANDS)
def test_an_error_has_no_commands(text: str) -> None:
    with pytest.raises(FerruleError) as raised, place(text):
        raise FerruleError(text, hint=text)
    for said in (str(raised.value), str(raised.value.hint), raised.value.as_problem().reason):
        assert OBEYED.search(said) is None
    assert str(raised.value).count("\n") == text.count("\n"), "the place is one line"


@pytest.mark.parametrize("text", ["std::vector", "a::b\nc", "# heading", "## x", "#[a]", "##vso", "a: :b"])
def test_other_texts_stay(text: str) -> None:
    assert visible(text) == text


def test_a_part_of_a_line_is_no_command() -> None:
    assert without_commands("::x\n::y", within_line=True) == "::x\n\\x3a:y"


@pytest.mark.parametrize("text", COMMANDS)
def test_json_has_no_commands_and_the_same_values(text: str) -> None:
    written = log_safe(json.dumps({"a": text, text: "\\##[x]"}, indent=2))
    assert OBEYED.search(written) is None
    assert json.loads(written) == {"a": text, text: "\\##[x]"}


def _model(folder: Path, name: str = "::error::in ##[error]b") -> Path:
    network = Network("net")
    network.add_input(TensorInfo(name, (1, 4), DataType.FLOAT32))
    network.set_outputs([network.add_relu_layer(name)])
    path = folder / "net.tflite"
    path.write_bytes(formats.to_tflite(network))
    return path


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return ran(["/bin/sh", "-c", command], cwd=folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "net.tflite"],
        ["inspect", "net.tflite", "--json"],
        ["inspect", "net.tflite", "--csv", "-"],
        ["inspect", "a\n::error::b.tflite"],
        ["inspect", "--a\n::error::b"],
        ["a\n::error::b"],
        ["run", "net.tflite", "--board", "x\n::error::b"],
    ],
    ids=lambda words: " ".join(words).replace("\n", " "),
)
def test_a_command_prints_nothing_that_a_runner_obeys(arguments: list[str], tmp_path: Path) -> None:
    _model(tmp_path)
    done = _run(f"{FERRULE} {shlex.join(arguments)}", tmp_path)
    assert done.returncode in {0, 2}
    assert OBEYED.search(done.stdout + done.stderr) is None
    assert "error" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("streams", "code"),
    some_of(
        [
            (">&-", 2), ("1</dev/null", 2), (">/dev/full", 2), (">&- 2>&-", 2), ("<&- >&- 2>&-", 2),
            ("<&-", 0), ("2>&-", 0), ("<&- 2>&-", 0), ("2</dev/null", 0), ("2>/dev/full", 0),
        ],
        # each stream closed, and each output one that fails; the others are combinations of these
        [(">&-", 2), ("1</dev/null", 2), (">/dev/full", 2), ("<&- >&- 2>&-", 2), ("<&- 2>&-", 0), ("2>/dev/full", 0)],
    ),
)  # fmt: skip
def test_a_stream_that_cannot_be_used(streams: str, code: int, tmp_path: Path) -> None:
    """The command is one that imports little: no other one opens or writes its streams itself."""
    done = _run(f"{FERRULE} cache {streams}", tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if code and "2>" not in streams:
        assert "standard output cannot be written" in done.stderr
    if not code:
        assert done.stdout.startswith(str(cache_folder()))


@pytest.mark.parametrize("streams", some_of(["2>&-", "2</dev/null", "2>/dev/full", ">&-"], ["2>&-", "2>/dev/full"]))
def test_an_error_keeps_its_code_where_it_cannot_be_printed(streams: str, tmp_path: Path) -> None:
    assert _run(f"{FERRULE} inspect none.tflite {streams}", tmp_path).returncode == 2
