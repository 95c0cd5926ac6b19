# SPDX-License-Identifier: Apache-2.0
"""`ferrule inspect --backends` includes dynamic backends; a bad one costs only itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import small_networks

from ferrule.cli import main
from ferrule.formats import to_tflite
from ferrule.report.inspection import Inspection
from ferrule.report.inspection_parts import DivisionPart

pytestmark = pytest.mark.cc


@pytest.fixture
def inspect(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inspect:
    """A function that inspects a small model with the dynamic backends of a folder."""
    return Inspect(tmp_path, capfd, monkeypatch)


class Inspect:
    def __init__(self, folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(folder)
        self._capfd = capfd
        self.model = folder / "model.tflite"
        self.model.write_bytes(to_tflite(small_networks.dense()))

    def __call__(self, path: Path, *arguments: str) -> tuple[int, str, str]:
        fixed = ["inspect", str(self.model), "--json", "--dynamic-path", str(path)]
        with pytest.raises(SystemExit) as caught:
            main([*fixed, *arguments])
        out, err = self._capfd.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, out, err

    def division(self, path: Path, *arguments: str) -> DivisionPart:
        code, out, err = self(path, *arguments)
        assert code == 0, err
        division = msgspec.json.decode(out, type=Inspection).division
        assert division is not None
        return division


def test_a_dynamic_backend_is_asked(inspect: Inspect, examples: Path) -> None:
    division = inspect.division(examples, "--backends", "Sample,CpuAcc")
    assert [(part.id, part.host, part.firmware) for part in division.backends] == [
        ("Sample", True, False),
        ("CpuAcc", True, True),
    ]
    (taker,) = division.layers
    assert (taker.backend, taker.refusals) == ("Sample", ())
    host, firmware = division.finals
    assert [layer.backend for layer in host.layers if layer.type == "FULLY_CONNECTED"] == ["Sample"]
    assert [layer.backend for layer in firmware.layers] == ["CpuAcc"]
    assert any("backend Sample is left out" in message for message in firmware.messages)


def test_its_reasons_are_told(inspect: Inspect, examples: Path) -> None:
    inspect.model.write_bytes(to_tflite(small_networks.two_by_two()))
    add, largest = inspect.division(examples, "--backends", "Sample,CpuAcc").layers
    assert (add.backend, largest.backend) == ("CpuAcc", "CpuAcc")
    assert "the sample runs ADD, RELU and FULLY_CONNECTED" in largest.refusals[0].reason


def test_its_options_pass_as_they_are_written(inspect: Inspect, examples: Path) -> None:
    division = inspect.division(examples, "--backends", "Sample,CpuAcc", "--backend-option", "Sample.level=3")
    assert division.finals[0].problem == ""


def test_one_that_crashes_is_told_and_left_out(
    inspect: Inspect, compile_backend: Callable[..., Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "dynamic"
    folder.mkdir()
    compile_backend(folder, "AT_FACTORY=CRASH")
    code, _, err = inspect(folder, "--backends", "Valid,CpuAcc")
    assert code == 2
    assert "there is no backend 'Valid'" in err
    assert "Test_Variant_backend.so" in caplog.text
    assert inspect.division(folder, "--backends", "CpuAcc").layers[0].backend == "CpuAcc"


def test_an_isolated_backend_that_exits_is_an_error(
    inspect: Inspect, tmp_path: Path, compile_backend: Callable[..., Path]
) -> None:
    """In this process, `_exit(0)` would end the command with exit code 0 and without a word."""
    path = compile_backend(tmp_path, "AT_SUPPORTS=_exit(0)")
    code, out, err = inspect(tmp_path, "--backends", "Valid,CpuAcc", "--isolate-dynamic-backends")
    assert (code, out) == (2, "")
    assert (
        f"backend 'Valid' ({path}) failed: its process ended by exit code 0 in supports(), for backend 'Valid'" in err
    )
