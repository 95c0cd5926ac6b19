# SPDX-License-Identifier: Apache-2.0
"""`ferrule run`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import small_networks

from ferrule.emulation.qemu.engine import QemuEngine
from ferrule.firmware import ZigToolchain
from ferrule.nativelib import RUN_REMEDY
from ferrule.report import ReportDocument, Verdict
from ferrule.running import run
from ferrule.timing import evidence
from ferrule.timing.evidence import MeasuredError

Ferrule = Callable[..., Any]

builds = [pytest.mark.cc, pytest.mark.emu]


class TestRuns:
    pytestmark = builds

    def test_pattern(self, ferrule: Ferrule, dense: Path, zig: None) -> None:
        outcome = ferrule("run", dense)
        assert outcome.code == 0
        assert outcome.err.splitlines() == [
            f"importing {dense}",
            "generating C for mps2-an386",
            "building with zig",
            "running on mps2-an386 by unicorn",
            "comparing with the numpy reference",
        ]
        assert "FULLY_CONNECTED" in outcome.out
        assert "input: pattern" in outcome.out
        assert outcome.out.splitlines()[-1] == "verdict: exact"

    def test_files(self, ferrule: Ferrule, dense: Path, zig: None, tmp_path: Path) -> None:
        x, y, report, project = (tmp_path / name for name in ("x.npy", "y.npy", "r.json", "project"))
        np.save(x, np.arange(18, dtype=np.int8).reshape(3, 6))
        outcome = ferrule(
            "run", dense, "--input", x, "--output", y, "--json", report, "--keep", project, "-q", "-O", "Os"
        )
        assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
        document = msgspec.json.decode(report.read_bytes(), type=ReportDocument)
        assert document.verdict is Verdict.EXACT
        assert (len(document.samples), document.input, document.build.optimization) == (3, str(x), "Os")
        reference = [small_networks.dense().run([row[None]])[0] for row in np.load(x)]
        assert np.load(y).tolist() == np.concatenate(reference).tolist()
        assert (project / "build" / "firmware.elf").is_file()

    def test_real_numbers(self, ferrule: Ferrule, dense: Path, zig: None, tmp_path: Path) -> None:
        x, y, network = tmp_path / "x.npy", tmp_path / "y.npy", small_networks.dense()
        np.save(x, np.linspace(-3, 3, 18).reshape(3, 6))
        assert ferrule("run", dense, "--real", "--input", x, "--output", y, "-q").code == 0
        assert np.load(y).tobytes() == network.run([np.load(x)], real=True)[0].tobytes()

    @pytest.mark.parametrize(
        ("deadline", "measured", "code"), [("1min", True, 0), ("1min", False, 4), ("1us", True, 1), ("1us", False, 1)]
    )
    def test_a_deadline_has_exit_codes(
        self,
        ferrule: Ferrule,
        dense: Path,
        zig: None,
        deadline: str,
        measured: bool,
        code: int,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        found = MeasuredError(low=-0.1, high=0.1, median=0.05, figures=8, sources=3) if measured else None
        monkeypatch.setattr(evidence, "measured_error", lambda core, *, waits: found)
        outcome = ferrule("run", dense, "--deadline", deadline)
        assert outcome.code == code
        assert f"deadline: {({0: 'kept', 1: 'missed', 4: 'not proved'})[code]}" in outcome.out
        assert ("no measured error" in outcome.out) is not measured
        assert outcome.out.splitlines()[-1] == "verdict: exact"

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--deadline", "50"), "'50' is not a deadline"),
            (("--deadline", "0ms"), "deadline '0ms' is not above 0 and at most a day"),
            (("--deadline", "-5ms"), "'-5ms' is not a deadline"),
            (("--rate", "often"), "'often' is not a rate"),
            (("--battery", "9V", "--rate", "1/s"), "'9V' is not a battery"),
            (("--battery", "220mAh"), "the battery 220mAh needs a rate of inferences"),
            (("--deadline", "5ms", "--engine", "qemu"), "the deadline needs the time of an inference"),
        ],
    )
    def test_questions_about_time_are_refused_before_a_build(
        self, ferrule: Ferrule, dense: Path, options: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(QemuEngine, "missing", lambda _: None)
        outcome = ferrule("run", dense, *options)
        assert outcome.code == 2
        assert message in outcome.err
        assert "generating" not in outcome.err

    def test_json_on_standard_output_is_alone(self, ferrule: Ferrule, dense: Path, zig: None) -> None:
        outcome = ferrule("run", dense, "--json", "-")
        assert (outcome.code, outcome.err) == (0, "")
        assert msgspec.json.decode(outcome.out, type=ReportDocument).schema_version == 4

    def test_several_by_name(self, ferrule: Ferrule, two_by_two: Path, zig: None, tmp_path: Path) -> None:
        left, right = tmp_path / "l.npy", tmp_path / "r.npy"
        np.save(left, np.zeros((1, 2, 3), np.int8))
        np.save(right, np.ones((1, 1, 3), np.int8))
        outcome = ferrule(
            "run",
            two_by_two,
            *("--input", f"right={right}", "--input", f"left={left}"),
            *("--output", f"largest={tmp_path / 'largest.npy'}", "--output", f"sum={tmp_path / 'sum.npy'}"),
        )
        assert outcome.code == 0
        assert np.load(tmp_path / "largest.npy").tolist() == np.ones((1, 2, 3)).tolist()
        assert np.load(tmp_path / "sum.npy").shape == (1, 2, 3)

    def test_a_different_result_has_exit_code_1(
        self, ferrule: Ferrule, dense: Path, zig: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        answer = run.run
        other = small_networks.dense(seed=9)
        monkeypatch.setattr(run, "run", lambda firmware, *rest: answer(replace(firmware, network=other), *rest))
        outcome = ferrule("run", dense, "--output", tmp_path / "y.npy")
        assert outcome.code == 1
        assert outcome.out.splitlines()[-1] == "verdict: different"
        assert "sample 0 differs by up to" in outcome.out
        assert (tmp_path / "y.npy").is_file()

    def test_interrupt(
        self, ferrule: Ferrule, dense: Path, zig: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        (tmp_path / "temporary").mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
        monkeypatch.setattr("ferrule.running.compilation.make_firmware", interrupt)
        outcome = ferrule("run", dense)
        assert outcome.code == 130
        assert outcome.err.splitlines()[-1] == "interrupted"
        assert list((tmp_path / "temporary").iterdir()) == []


@pytest.fixture
def refused(ferrule: Ferrule) -> Callable[..., tuple[str, str]]:
    """A function that calls a command with a user's mistake, and returns the one-line error and the hint."""

    def call(*arguments: object) -> tuple[str, str]:
        outcome = ferrule(*arguments)
        assert outcome.code == 2, outcome
        assert outcome.out == ""
        lines = outcome.err.splitlines()
        while lines[0].startswith(("importing ", "generating ")):
            lines.pop(0)
        error, *hints = lines
        assert error.startswith("error: ")
        assert len(hints) <= 1
        assert all(hint.startswith("hint: ") for hint in hints)
        return error.removeprefix("error: "), hints[0].removeprefix("hint: ") if hints else ""

    return call


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["--board", "mps2-an38"], "there is no board 'mps2-an38'", "did you mean mps2-an386"),
        (["--board", "esp"], "there is no board 'esp'", "known: microbit, mps2-an385, "),
        (["--board", "./nowhere"], "there is no board in nowhere", "board.toml"),
        (["--engine", "unicron"], "there is no engine 'unicron'", "did you mean unicorn?"),
        (["--toolchain", "zog"], "there is no toolchain 'zog'", "did you mean zig?"),
        (["--toolchain", "gcc"], "there is no toolchain 'gcc'", "arm-none-eabi-gcc"),
        (["--backends", "CpuAc"], "backend 'CpuAc'", "CpuAcc"),
        (["--backends", "CpuAcc,EthosX"], "backend 'EthosX'", ""),
        (["--input", "nothing.npy"], "nothing.npy cannot be read: No such file or directory", ""),
        (["--input", "z=nothing.npy"], "--input z=nothing.npy names no input", ""),
        (["--output", "nowhere/y.npy"], "--output nowhere/y.npy: there is no folder", ""),
        (["--output", "."], "--output .: is a folder", ""),
        (["--output", "a.npy", "--output", "y=b.npy"], "the output 'y' is given twice, with a.npy before", ""),
        (["--json", "nowhere/r.json"], "--json nowhere/r.json: there is no folder", ""),
        (["--json", "."], "--json .: is a folder", ""),
        (["--keep", "/dev/null/project"], "/dev/null/project cannot be written", ""),
    ],
)
def test_options_that_are_wrong(
    refused: Callable[..., tuple[str, str]],
    dense: Path,
    zig: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    error: str,
    hint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    found, advice = refused("run", dense, *arguments)
    assert error in found
    assert hint in advice
    assert list(tmp_path.iterdir()) == []


def test_inputs_that_are_wrong(refused: Callable[..., tuple[str, str]], dense: Path, zig: None, tmp_path: Path) -> None:
    np.save(tmp_path / "wrong.npy", np.zeros((1, 6), np.float32))
    np.savez(tmp_path / "x.npz", x=np.zeros((1, 6), np.int8))
    for name, message in (
        ("wrong.npy", "input 'x' is float32[1, 6], expected int8[1, 6]"),
        ("x.npz", "is an archive of numpy (.npz), expected arrays"),
    ):
        assert message in refused("run", dense, "--input", tmp_path / name)[0]
    message, hint = refused("run", dense, "--input", f"z={tmp_path / 'wrong.npy'}")
    assert "wrong.npy names no input, expected name=file" in message
    assert hint == "the model's inputs: x"


def test_several_inputs_need_names(
    refused: Callable[..., tuple[str, str]], two_by_two: Path, zig: None, tmp_path: Path
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((1, 2, 3), np.int8))
    assert refused("run", two_by_two, "--input", path) == (
        f"--input {path} names no input, expected name=file",
        "the model's inputs: left, right",
    )
    assert "input 'right' is missing" in refused("run", two_by_two, "--input", f"left={path}")[0]
    assert refused("run", two_by_two, "--output", path)[1] == "the model's outputs: sum, largest"


def test_models_that_are_wrong(refused: Callable[..., tuple[str, str]], tmp_path: Path) -> None:
    assert "there is no file" in refused("run", tmp_path / "none.tflite")[0]
    (tmp_path / "text.tflite").write_text("text", encoding="utf-8")
    assert "text.tflite" in refused("run", tmp_path / "text.tflite")[0]


def test_missing_tools(
    refused: Callable[..., tuple[str, str]], dense: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ferrule.emulation.unicorn.engine.find_spec", lambda _: None)
    assert refused("run", dense) == ("the Python package unicorn is missing", RUN_REMEDY)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refused("run", dense, "--engine", "qemu") == (
        "qemu-system-arm is missing",
        "apt-get install qemu-system-arm",
    )
    monkeypatch.setattr("ferrule.emulation.qemu.engine.QemuEngine.missing", lambda _: None)
    assert refused("run", dense, "--engine", "qemu", "--toolchain", "arm-none-eabi-gcc") == (
        "the toolchain arm-none-eabi-gcc is not installed",
        "apt-get install gcc-arm-none-eabi",
    )
    monkeypatch.setattr(ZigToolchain, "find", lambda _: None)
    assert refused("run", dense, "--engine", "qemu") == (
        "the toolchain zig is not installed",
        "pip install 'ferrule[run]', or use another compiler: --toolchain arm-none-eabi-gcc",
    )


def test_a_platform_without_its_tree(ferrule: Ferrule, dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CMSIS_PATH", raising=False)
    outcome = ferrule("run", dense, "--platform", "cmsis")
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: firmware for cmsis cannot be built here: missing: CMSIS_PATH" in outcome.err
    assert "set CMSIS_PATH to a checkout of ARM-software/CMSIS_6" in outcome.err
    assert "generating C" not in outcome.err


def test_a_platforms_tools_choose_the_compiler(ferrule: Ferrule, dense: Path) -> None:
    outcome = ferrule("run", dense, "--platform", "zephyr", "--toolchain", "zig")
    assert outcome.code == 2
    assert "error: --toolchain zig: the tools of platform zephyr choose the compiler" in outcome.err
