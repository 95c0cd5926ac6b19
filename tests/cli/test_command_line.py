# SPDX-License-Identifier: Apache-2.0
"""The command that a document states."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from ferrule.cli.command_line import this_command
from ferrule.cli.main import main


def stated(*arguments: str) -> str:
    with click.Context(click.Command("ferrule"), obj=arguments):
        (command,) = this_command()
    return command


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("kws.tflite", "kws.tflite"),
        ("models/kws.tflite", "models/kws.tflite"),
        ("/home/somebody/models/kws.tflite", "kws.tflite"),
        ("../../somebody/kws.tflite", "kws.tflite"),
        ("~/kws.tflite", "kws.tflite"),
        ("C:\\Users\\somebody\\kws.tflite", "kws.tflite"),
        ("x=/home/somebody/x.npy", "x=x.npy"),
        ("--input=x=/home/somebody/x.npy", "--input=x=x.npy"),
        ("socket://lab.example:3000", "socket://..."),
        ("--scheduler=tcp://somebody@10.0.0.1:8786", "--scheduler=tcp://..."),
        ("/dev/ttyUSB0", "ttyUSB0"),
        ("npu0:bus-error@3", "npu0:bus-error@3"),
        ("two words", "'two words'"),
        ("a..b", "a..b"),
    ],
)
def test_words_name_no_place_of_this_machine(word: str, shown: str) -> None:
    assert stated("run", word, "-q") == f"ferrule run {shown} -q"


def test_names_of_layers_are_no_paths() -> None:
    assert stated("run", "--hint", "/conv=CpuAcc") == "ferrule run --hint /conv=CpuAcc"
    assert stated("run", "--hint=/conv=CpuAcc") == "ferrule run --hint=/conv=CpuAcc"


def test_files_below_the_working_folder_keep_their_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert stated("run", str(tmp_path / "models" / "kws.tflite")) == "ferrule run models/kws.tflite"


def test_there_is_no_command_outside_of_the_command_line() -> None:
    assert this_command() == ()


def test_a_failed_command_writes_a_page_with_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["run", "/nowhere/<b>.tflite", "--html", "page.html"])
    assert ended.value.code == 2
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<pre>ferrule run &#39;&lt;b&gt;.tflite&#39; --html page.html</pre>" in page
    assert "there is no file" in page
