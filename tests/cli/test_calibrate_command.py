# SPDX-License-Identifier: Apache-2.0
"""`ferrule calibrate`."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.cc, pytest.mark.emu]
Ferrule = Callable[..., Any]


def test_the_firmware_is_built_and_the_emulated_board_calibrated(ferrule: Ferrule, zig: None, tmp_path: Path) -> None:
    built = ferrule("calibrate", "--board", "mps2-an386", "--keep", tmp_path / "kept")
    assert built.code == 0
    assert f"{tmp_path / 'kept' / 'build' / 'firmware.elf'}: load it onto the board" in built.out
    found = tmp_path / "found.toml"
    done = ferrule("calibrate", "--engine", "unicorn", "--repeats", "1", "--output", found, "--programs")
    assert done.code == 0
    assert "the error of the prediction: +0.0% to +0.0%" in done.err
    assert "  loop_1024 " in done.err
    timing = tomllib.loads(found.read_text(encoding="utf-8"))["timing"]
    assert timing["source"].startswith("calibrated on ")
    assert timing["residual"] == [0.0, 0.0]
    assert timing["ssram1"] == {"wait_states": 0, "width_bytes": 4}
    printed = ferrule("calibrate", "--engine", "unicorn", "--repeats", "1", "--quiet")
    assert tomllib.loads(printed.out)["timing"] == timing
    assert not printed.err


def test_a_calibration_without_a_port_or_a_model(ferrule: Ferrule, zig: None) -> None:
    refused = ferrule("calibrate", "--board", "mps2-an386", "--quiet")
    assert refused.code == 2
    assert "needs the board's port" in refused.err
    assert "--keep FOLDER" in refused.err
    assert "cannot be calibrated" in ferrule("calibrate", "--board", "mps3-an547", "--keep", "never").err
    assert not Path("never").exists()
