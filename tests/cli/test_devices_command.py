# SPDX-License-Identifier: Apache-2.0
"""Devices on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from device_networks import HINTS, crossing
from needs import require_module

import ferrule as api
from ferrule.codegen.schedule import Call
from ferrule.formats import to_tflite

Ferrule = Callable[..., Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "crossing.tflite"
    path.write_bytes(to_tflite(crossing()))
    return path


def hints(model: Path) -> list[str]:
    imported = api.load(model).layers  # imported layers have other names, but the same order
    names = {layer.name: found.name for layer, found in zip(crossing().layers, imported, strict=True)}
    return [word for layer, wish in HINTS.items() for word in ("--hint", f"{names[layer]}={wish}")]


DEVICES = ("--device", "npu0=SoftNpu", "--device", "npu1=SoftNpu")


def test_inspect_shows_the_schedule(ferrule: Ferrule, model: Path) -> None:
    shown = ferrule("inspect", model, "--backends", "CpuAcc", *DEVICES, *hints(model), "--schedule")
    assert shown.code == 0, shown.err
    assert "npu0 activate, npu1 activate, npu0 open, npu1 open, npu0 copy_to" in " ".join(shown.out.split())
    shown = ferrule("inspect", model, "--backends", "CpuAcc", *DEVICES, *hints(model), "--schedule", "--json")
    schedule = msgspec.json.decode(shown.out)["schedule"]
    calls = {call.split()[1] for part in schedule for call in part["calls"]}
    assert calls == {str(call) for call in Call} - {"finish"}  # SoftNpu works in the core's own time
    assert {part["device"] for part in schedule} == {"npu0", "npu1", "CpuAcc"}


def test_a_schedule_needs_backends(ferrule: Ferrule, model: Path) -> None:
    shown = ferrule("inspect", model, "--schedule")
    assert shown.code == 2
    assert "--schedule are only valid with --backends" in shown.err


def test_the_schedule_is_that_of_a_board(ferrule: Ferrule, model: Path) -> None:
    asked = ("inspect", model, "--backends", "Woofles,CpuAcc", *("--device", "a=Woofles", "--device", "b=Woofles"))
    names = [layer.name for layer in api.load(model).layers]
    both = ("--hint", f"{names[0]}=Woofles/a", "--hint", f"{names[1]}=Woofles/b", "--schedule", "--board")
    assert ferrule(*asked, *both, "mps2-an386").code == 0
    shown = ferrule(*asked, *both, "mps2-an999")
    assert (shown.code, "there is no board 'mps2-an999'" in shown.err) == (2, True)


def test_inspect_shows_the_kernels_of_a_board(ferrule: Ferrule, model: Path) -> None:
    shown = ferrule("inspect", model, "--kernels", "--board", "mps2-an385", "--goal", "speed")
    assert shown.code == 0, shown.err
    assert "the firmware's kernels" in shown.out
    assert "run by" not in shown.out  # no backends were named
    shown = ferrule("inspect", model, "--kernels", "--backends", "CpuAcc", *DEVICES, *hints(model), "--json")
    document = msgspec.json.decode(shown.out)
    assert document["division"] is not None
    kernels = {part["layer"]: part for part in document["kernels"]}
    assert {part["backend"] for part in kernels.values()} >= {"CpuAcc", "SoftNpu"}
    assert all(sum(kernel["chosen"] for kernel in part["kernels"]) == 1 for part in kernels.values())
    assert any(overlap["forward_bytes"] == 0 for part in kernels.values() for overlap in part["overlaps"])
    shown = ferrule("inspect", model, "--no-fallback")
    assert (shown.code, "are only valid with --backends, --kernels or" in shown.err) == (2, True)


@pytest.mark.cc
@pytest.mark.emu
def test_a_model_on_the_core_calls_no_device(ferrule: Ferrule, model: Path) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    shown = ferrule("run", model, "--trace-devices")
    assert shown.code == 0, shown.err
    assert "device calls: none, no layer runs on a device" in shown.out
