# SPDX-License-Identifier: Apache-2.0
"""The commands other than `run`, and the behaviour common to all."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from gate import every

from ferrule import __version__, firmware
from ferrule.boards import board_names
from ferrule.cli import main
from ferrule.cli.options import CLOCKS, GOALS, OVERLAPS, PLATFORMS, TRANSFERS, JobOptions
from ferrule.cli.progress import progress
from ferrule.cli.reading import ITERATIONS
from ferrule.cli.reading import VERSIONS as ROUNDINGS
from ferrule.emulation import Clock
from ferrule.firmware import Job, StackBound, ToolStatus, ZigToolchain
from ferrule.formats.tflite.versions import VERSIONS
from ferrule.operators.control_flow import DEFAULT_ITERATIONS
from ferrule.optimizer import options as optimizer_options
from ferrule.progress import Step
from ferrule.report.inspection import Inspection
from ferrule.running.configuration import Configuration

Ferrule = Callable[..., Any]
COMMANDS = ("boards", "build", "doctor", "generate", "inspect", "run")


@pytest.mark.parametrize("option", ["--help", "-h", "help"])
def test_help_lists_the_commands(ferrule: Ferrule, option: str) -> None:
    outcome = ferrule(option)
    assert (outcome.code, outcome.err) == (0, "")
    assert all(f"\n  {command} " in outcome.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(ferrule: Ferrule, command: str) -> None:
    outcome = ferrule(command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"Usage: ferrule {command}" in outcome.out


def test_help_and_version_are_words_too(ferrule: Ferrule) -> None:
    assert ferrule("help", "inspect").out == ferrule("inspect", "--help").out
    assert ferrule("version").out == ferrule("--version").out
    assert ferrule("help", "inspct").err == "error: there is no command 'inspct'\nhint: did you mean inspect, init?\n"


def test_errors_cannot_steer_the_terminal(ferrule: Ferrule) -> None:
    outcome = ferrule("inspect", "no\x1b[31m\u202e\nsuch.tflite")
    assert outcome.code == 2
    assert all(line.isprintable() for line in outcome.err.splitlines())
    assert "no\\x1b[31m\\u202e" in outcome.err


def test_version(ferrule: Ferrule) -> None:
    first, python, *tools = ferrule("--version").out.splitlines()
    assert (first, python) == (f"ferrule, version {__version__}", f"  Python {platform.python_version()}")
    assert f"  unicorn {version('unicorn')}" in tools


def test_unknown_command(ferrule: Ferrule) -> None:
    outcome = ferrule("ruin", "model.tflite")
    assert outcome.code == 2
    assert outcome.err == "error: there is no command 'ruin'\nhint: did you mean run, init?\n"


@pytest.mark.parametrize("arguments", [["run"], ["run", "x.tflite", "--bord", "y"], ["generate", "x.tflite"]])
def test_wrong_usage(ferrule: Ferrule, arguments: list[str]) -> None:
    outcome = ferrule(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"Usage: ferrule {arguments[0]}" in outcome.err


def test_a_bug_has_a_traceback(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("ferrule.firmware.probe_tools", fail)
    outcome = ferrule("doctor")
    assert outcome.code == 70
    assert "RuntimeError: broken" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("error: this is a bug in ferrule; please report it")


def test_debug_shows_the_traceback_of_an_error(ferrule: Ferrule, tmp_path: Path) -> None:
    path = tmp_path / "none.tflite"
    assert "Traceback" not in ferrule("inspect", path).err
    outcome = ferrule("--debug", "inspect", path)
    assert outcome.code == 2
    assert "Traceback" in outcome.err
    assert "error: there is no file" in outcome.err


def test_interrupt(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ferrule.firmware.probe_tools", interrupt)
    outcome = ferrule("doctor")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "\ninterrupted\n")


def test_a_closed_pipe_is_no_error() -> None:
    program = "import sys; from ferrule.cli import main; main(['boards'])"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_boards(ferrule: Ferrule) -> None:
    outcome = ferrule("boards")
    assert outcome.code == 0
    for name in board_names():
        assert name in outcome.out
    assert "cortex-m7" in outcome.out
    assert "unicorn, qemu" in outcome.out


def test_boards_as_json(ferrule: Ferrule) -> None:
    listing = json.loads(ferrule("boards", "--json").out)
    assert listing["schema_version"] == 2
    boards = {board["name"]: board for board in listing["boards"]}
    assert set(boards) == set(board_names())
    board = boards["mps3-an547"]
    assert (board["cpu"]["type"], board["cpu"]["fpu"], board["clock_hz"]) == ("cortex-m55", "fpv5-d16", 32_000_000)
    assert board["memories"][0] == {"name": "itcm", "kind": "flash", "address": 0x1000_0000, "size_bytes": 0x8_0000}
    assert "unicorn" not in board["engines"]
    assert "cortex-m55" in board["refusals"]["unicorn"]


def test_boards_of_a_wrong_folder(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRULE_BOARDS", "/nowhere")
    outcome = ferrule("boards")
    assert outcome.code == 2
    assert "/nowhere" in outcome.err


def test_doctor(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = ferrule("doctor")
    assert whole.code == 0
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = ferrule("doctor")
    assert outcome.code == 0
    for tool, remedy in (
        ("qemu-system-arm", "apt-get install qemu-system-arm"),
        ("arm-none-eabi-gcc", "apt-get install gcc-arm-none-eabi"),
    ):
        (line,) = [line for line in outcome.out.splitlines() if f"│ {tool} " in line]
        assert "missing" in line
        assert remedy in line


@pytest.mark.parametrize(
    ("script", "flavour"),
    every(3, [("exec dotnet renode.dll", ".NET"), ("exec mono Renode.exe", "Mono"), ("exit", "unknown")]),
)
def test_doctor_finds_renode_by_its_variable(
    ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, flavour: str
) -> None:
    program = tmp_path / "the-renode"
    program.write_text(f"#!/bin/sh\necho 'Renode v1.16.1.12345'\nexit 0\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("RENODE", str(program))
    (tool,) = (tool for tool in diagnosed(ferrule) if tool.name == "renode")
    assert tool.version == f"Renode v1.16.1.12345 [{flavour}]"


def test_doctor_misses_a_renode_that_is_not_there(
    ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RENODE", str(tmp_path / "nowhere"))
    assert not next(tool for tool in diagnosed(ferrule) if tool.name == "renode").found


def test_doctor_as_json(ferrule: Ferrule) -> None:
    tools = diagnosed(ferrule)
    names = [tool.name for tool in tools]
    assert {"unicorn", "ziglang", "qemu-system-arm", "arm-none-eabi-gcc"} <= {*names}
    assert {"cmake", "ninja", "dtc", "ZEPHYR_BASE", "CMSIS_PATH", "CMSIS_RTX_PATH"} <= {*names}
    assert len({*names}) == len(names)
    assert all(tool.remedy for tool in tools)


def diagnosed(ferrule: Ferrule) -> list[ToolStatus]:
    document = json.loads(ferrule("doctor", "--json").out)
    assert document["schema_version"] == 1
    return msgspec.convert(document["tools"], type=list[ToolStatus])


def test_doctor_tries_what_it_finds(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs that say their version and do nothing else are broken, and the table quotes what they said."""
    for name in ("arm-none-eabi-gcc", "qemu-system-arm", "make", "cmake", "dtc"):
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\n[ "$1" != --version ] || {{ echo {name} 9.9.9; exit; }}\necho error: lame >&2; exit 3\n'
        )
        program.chmod(0o755)
    (tmp_path / "ninja").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ninja").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    tools = {tool.name: tool for tool in diagnosed(ferrule)}
    for name in ("arm-none-eabi-gcc", "qemu-system-arm", "make", "cmake", "dtc"):
        assert (tools[name].found, tools[name].problem) == (True, "it fails with 3: error: lame")
    assert tools["ninja"].problem == "it does not say its version"
    assert not tools["newlib"].found
    for name in ("unicorn", "ziglang", "cffi", "cc"):
        assert tools[name].works
    (line,) = [line for line in ferrule("doctor").out.splitlines() if "│ dtc " in line]
    assert "broken" in line
    assert "it fails with 3: error: lame" in line


def test_doctor_lists_the_variables(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ETHOSU_DRIVER", str(tmp_path / "nowhere"))
    monkeypatch.setenv("FERRULE_BOARDS", f"{tmp_path}{os.pathsep}{tmp_path / 'lost'}")
    monkeypatch.setenv("ZEPHYR_MODULES", f"{tmp_path};{tmp_path / 'lost'}")
    monkeypatch.setenv("GCOV", "no-such-gcov --option")
    monkeypatch.setenv("CXX", "'")
    monkeypatch.setenv("FERRULE_CACHE", "")
    monkeypatch.delenv("ACL_ROOT", raising=False)
    document = json.loads(ferrule("doctor", "--json").out)
    found = {each["name"]: each for each in document["variables"]}
    assert found["ETHOSU_DRIVER"]["problem"] == f"there is no folder {tmp_path / 'nowhere'}"
    assert found["FERRULE_BOARDS"]["problem"] == f"there is no folder {tmp_path / 'lost'}"
    assert found["ZEPHYR_MODULES"]["problem"] == f"there is no folder {tmp_path / 'lost'}"
    assert found["GCOV"]["problem"] == "there is no program no-such-gcov"
    assert found["CXX"]["problem"] == "it is no command: No closing quotation"
    assert (found["FERRULE_CACHE"]["value"], found["FERRULE_CACHE"]["problem"]) == ("", None)
    assert (found["ACL_ROOT"]["value"], found["ACL_ROOT"]["problem"]) == (None, None)
    lines = ferrule("doctor").out.splitlines()
    assert any("│ GCOV " in line and "no-such-gcov --option" in line for line in lines)
    assert any("│ FERRULE_CACHE " in line and "(empty)" in line for line in lines)


def test_inspect(ferrule: Ferrule, two_by_two: Path) -> None:
    outcome = ferrule("inspect", two_by_two)
    assert (outcome.code, outcome.err) == (0, "")
    assert "input 'left': int8 1x2x3" in outcome.out
    assert "arena: " in outcome.out
    planned = ferrule("inspect", two_by_two, "--plan").out
    assert planned.startswith(outcome.out)
    drawing = planned.removeprefix(outcome.out)
    assert "region sram: 35 B, optimal" in drawing
    assert "9,223" not in drawing


def test_inspect_as_json(ferrule: Ferrule, two_by_two: Path) -> None:
    inspection = msgspec.json.decode(ferrule("inspect", two_by_two, "--json").out, type=Inspection)
    assert inspection.inputs == ("left", "right")
    assert [layer.type for layer in inspection.layers] == ["ADD", "MAXIMUM"]


@pytest.mark.parametrize(("version", "rule"), [("tflm", "tflm"), ("litert-2.3", "onnx")])
def test_inspect_with_a_rounding(ferrule: Ferrule, dense: Path, version: str, rule: str) -> None:
    outcome = ferrule("inspect", dense, "--rounding", version, "--json")
    assert outcome.code == 0
    assert [layer["rounding"] for layer in json.loads(outcome.out)["layers"]] == [rule]


def test_the_arithmetic_of_an_onnx_model_is_refused_for_another_one(ferrule: Ferrule, dense: Path) -> None:
    outcome = ferrule("inspect", dense, "--onnx-arithmetic", "as-written")
    assert outcome.code == 2
    assert "the arithmetic 'as-written' is one for ONNX models, and this is a TensorFlow Lite model" in outcome.err
    assert "is not one of 'optimised', 'as-written'" in ferrule("inspect", dense, "--onnx-arithmetic", "fast").err


def test_an_output_becomes_a_state(ferrule: Ferrule, two_by_two: Path, dense: Path, tmp_path: Path) -> None:
    outcome = ferrule("inspect", two_by_two, "--state", "left=sum")
    assert "input 'left'" not in outcome.out
    assert "state: 12 B that live from one run to the next" in outcome.out
    made = ferrule("generate", dense, two_by_two, "--state", "left=sum", "--out", tmp_path)
    assert (made.code, made.err) == (0, "")
    assert "ferrule_two_by_two_reset" in (tmp_path / "model" / "ferrule_two_by_two.h").read_text()
    assert "ferrule_dense_reset" not in (tmp_path / "model" / "ferrule_dense.h").read_text()
    assert "expected INPUT=OUTPUT" in ferrule("inspect", two_by_two, "--state", "left").err
    assert "hint: its inputs: left, right" in ferrule("inspect", two_by_two, "--state", "x=sum").err


def test_generate(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    outcome = ferrule("generate", dense, "--out", folder, "--board", "mps2-an500", "--toolchain", "arm-none-eabi-gcc")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f"build it with: make -C {folder}\n")
    assert ferrule("generate", dense, "--out", folder).code == 0
    with (folder / "main.c").open("a") as file:
        file.write("/* mine */\n")
    kept = ferrule("generate", dense, "--out", folder)
    assert (kept.code, kept.err) == (0, "")
    assert kept.out.endswith("main.c: edited by you, left unchanged\n")
    other = ferrule("generate", dense, "--out", folder, "--board", "mps2-an505")
    assert other.out.endswith("main.c: edited by you, left unchanged; main.c.new has the newly generated contents\n")
    with (folder / "ferrule.mk").open("a") as file:
        file.write("# mine\n")
    refusal = ferrule("generate", dense, "--out", folder)
    assert refusal.code == 2
    assert "changed by hand and would be lost: ferrule.mk" in refusal.err
    forced = ferrule("generate", dense, "--out", folder, "--force")
    assert forced.code == 0
    assert "ferrule.mk: edited by you, renamed to ferrule.mk.orig\n" in forced.out


def test_the_platforms_are_those_of_the_package() -> None:
    assert TRANSFERS == optimizer_options.TRANSFERS
    assert OVERLAPS == firmware.job.OVERLAPS
    assert GOALS == firmware.job.GOALS
    assert tuple(Clock) == CLOCKS
    assert set(PLATFORMS) == set(firmware.PLATFORMS)
    assert ITERATIONS == DEFAULT_ITERATIONS
    assert tuple(VERSIONS) == ROUNDINGS
    assert PLATFORMS[0] == firmware.DEFAULT_PLATFORM


def test_the_command_line_precedes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ferrule.toml"
    path.write_text('board = "mps2-an505"\ntoolchain = "arm-none-eabi-gcc"\noptimization = "Os"\n', encoding="utf-8")
    none = JobOptions(backends="CpuAcc", hints=(), devices=(), backend_options=(), config=path, board=None)
    job = none.job()
    assert (job.board, job.toolchain, job.optimization) == ("mps2-an505", "arm-none-eabi-gcc", "Os")
    job = replace(none, board="mps2-an385", toolchain="zig", optimization="O2").job()
    assert (job.board, job.toolchain, job.optimization) == ("mps2-an385", "zig", "O2")


def test_the_engine_of_the_file(ferrule: Ferrule, dense: Path, tmp_path: Path) -> None:
    path = tmp_path / "ferrule.toml"
    path.write_text('engine = "unicron"\n', encoding="utf-8")
    outcome = ferrule("run", dense, "--config", path)
    assert (outcome.code, "there is no engine 'unicron'" in outcome.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("ferrule bo", ["boards"]),
        ("ferrule run --board mps3", ["mps3-an547"]),
        ("ferrule run --backends CpuRef,Woo", ["CpuRef,Woofles"]),
        ("ferrule run --engine renode:cosimulation-", ["renode:cosimulation-ticks"]),
        ("ferrule generate --toolchain a", ["arm-none-eabi-gcc"]),
        ("ferrule run --optim", ["--optimization"]),
    ],
)
def test_completion(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch, words: str, completed: list[str]) -> None:
    monkeypatch.setenv("_FERRULE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    outcome = ferrule()
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.partition(",")[2] for line in outcome.out.splitlines()] == completed


def test_the_log_has_the_commands(ferrule: Ferrule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrule.firmware.probe_tools", lambda: subprocess.run(["true", "a b"], check=True) and [])
    assert "ferrule.commands: true 'a b'\n" in ferrule("doctor", "--json", "-v").err
    assert "ferrule.commands" not in ferrule("doctor", "--json").err


@pytest.mark.parametrize("no_color", [False, True])
def test_colours_of_errors(monkeypatch: pytest.MonkeyPatch, no_color: bool) -> None:
    shown: list[bool | None] = []
    monkeypatch.setattr(click, "echo", lambda *_texts, color=None, **_options: shown.append(color))
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit):
        main(["ruin"])
    assert set(shown) == {False if no_color else None}


def test_defaults_are_those_of_a_job() -> None:
    none = JobOptions(backends="CpuAcc", hints=(), devices=(), backend_options=(), config=None, board=None)
    job = replace(none.job(Configuration()), registry=None)
    assert job == Job()


@pytest.mark.cc
def test_build(ferrule: Ferrule, dense: Path, zig: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    assert ferrule("generate", dense, "--out", folder).code == 0
    outcome = ferrule("build", folder)
    assert (outcome.code, outcome.err) == (0, "building with zig\n")
    assert outcome.out.startswith(f"{(folder / 'build' / 'firmware.elf').resolve()}: code ")
    assert re.fullmatch(r"stack: at most \d+ of 16,384 B", outcome.out.splitlines()[1])
    quiet = ferrule("build", folder, "-q", "-O", "Os")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    unknown = StackBound(reason="recursion: f → f")
    monkeypatch.setattr("ferrule.firmware.project.stack_bound", lambda *_, **__: unknown)
    assert ferrule("build", folder).out.splitlines()[1] == "stack: no bound is known: recursion: f → f"


def test_build_of_what_is_no_project(ferrule: Ferrule, tmp_path: Path) -> None:
    outcome = ferrule("build", tmp_path)
    assert outcome.code == 2
    error, hint = outcome.err.splitlines()
    assert error.startswith(f"error: {tmp_path} is not a generated project: ferrule-project.json cannot be read")
    assert hint == "hint: make one with: ferrule generate MODEL --out FOLDER"


def test_build_without_the_toolchain(
    ferrule: Ferrule, dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    assert ferrule("generate", dense, "--out", folder).code == 0
    monkeypatch.setattr(ZigToolchain, "find", lambda _: None)
    outcome = ferrule("build", folder)
    assert outcome.code == 2
    assert (
        "error: the toolchain zig is not installed\nhint: pip install 'ferrule[run]', or use another compiler: "
        in outcome.err
    )
    assert "there is no toolchain 'zog'" in ferrule("build", folder, "--toolchain", "zog").err
    shutil.rmtree(folder / "board")
    assert "there is no board in" in ferrule("build", folder).err


def test_progress_prints_phases_only(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(quiet=False) as say:
        say(Step(phase="building"))
        say(Step(phase="building", done=1, total=2))
        say(Step(phase="running"))
        say(Step(phase="importing \u202ex\x1b[2J.tflite"))
    assert capsys.readouterr().err == "building\nrunning\nimporting \\u202ex\\x1b[2J.tflite\n"
    with progress(quiet=True) as say:
        say(Step(phase="building"))
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress(quiet=False) as say:
        say(Step(phase="building [x]", done=1, total=2))
    shown = terminal.getvalue()
    assert "building [x]: 1 of 2" in shown
    assert shown.rpartition("building")[2].endswith("\x1b[2K")  # the line is erased at the end
