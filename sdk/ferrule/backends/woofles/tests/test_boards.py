# SPDX-License-Identifier: Apache-2.0
"""Woofles on emulated boards: the MLPerf Tiny models, two devices, early activation; all bit-exact."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from covering import EXHAUSTIVE, covering
from needs import MODELS_SOURCE, lacking, require_module
from small_networks import int8_input

import ferrule
from ferrule._typing import override
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles.registers import TABLE
from ferrule.cli.main import main
from ferrule.devices import Fault, RegisterAccess
from ferrule.formats import to_tflite
from ferrule.report import ReportDocument

pytestmark = [pytest.mark.cc, pytest.mark.emu]

TAKEN = {"ad01_int8": 10, "kws_ref_model": 6, "pretrainedResnet_quant": 13, "vww_96_int8": 15}
"""Number of layers of each int8 model that Woofles supports."""
X = np.arange(-8, 8, dtype=np.int8).reshape(1, 16)


@pytest.fixture(autouse=True)
def tools() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")


def device(name: str = "npu0", **binding: str | int) -> Device:
    return Device(name=name, backend=BackendId("Woofles"), binding=binding)


LARGE = {("pretrainedResnet_quant", "mps2-an386", 0)}
"""One run of a model that takes long; `make nightly` runs the other one, too."""


@covering(
    "model, board, use_interrupt",
    tuple(TAKEN),
    ("mps2-an386", "mps2-an505"),
    (0, 1),
    seed=3,
    sentinel=("ad01_int8", "mps2-an386", 1),
    gate=2,
    allowed=lambda *row: EXHAUSTIVE or row in LARGE or row[0] in {"ad01_int8", "kws_ref_model"},
)
def test_the_int8_models(model: str, board: str, use_interrupt: int) -> None:
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    network = ferrule.load(Path(folder) / f"{model}.tflite")
    npu = device(use_interrupt=use_interrupt)
    firmware = ferrule.compile(network, board=board, backends=["Woofles", "CpuAcc"], devices=[npu])
    report = firmware.run(trace_devices=True, check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    given = [layer for layer in report.layers if layer.device == "npu0"]
    assert len(given) == TAKEN[model]
    assert {layer.type for layer in report.layers} & {"CONV_2D", "FULLY_CONNECTED"} <= {layer.type for layer in given}
    assert all(layer.count > 0 for layer in given)
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned
    (part,) = report.document.devices
    assert (part.name, part.backend) == ("npu0", "Woofles")


def branches() -> ferrule.Network:
    network = ferrule.Network("branches")
    network.add_input(int8_input("x", 1, 16))
    left = network.add_add_layer("x", "x", quantization=ferrule.Quantization.of(1.0), name="left")
    right = network.add_mul_layer("x", "x", quantization=ferrule.Quantization.of(1.0), name="right")
    core = network.add_tanh_layer(left, name="core")
    network.set_outputs([network.add_add_layer(core, right, quantization=ferrule.Quantization.of(0.5), name="both")])
    return network


HINTS = {"left": "Woofles/npu0", "right": "Woofles/npu1", "both": "Woofles/npu1"}


@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an505"])
def test_two_devices_with_leads(board: str) -> None:
    """Each device has its own address and interrupt; one is polled and the other is not."""
    devices = [device("npu0", use_interrupt=1), device("npu1", activation_lead=2)]
    firmware = ferrule.compile(branches(), board=board, backends=["CpuAcc"], hints=HINTS, devices=devices)
    bases = [use.driver.base for use in firmware.artifact.devices]
    assert len(set(bases)) == 2
    report = firmware.run([X], trace_devices=True, check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert {layer.name: layer.device for layer in report.layers if layer.backend == "Woofles"} == {
        "left": "npu0",
        "right": "npu1",
        "both": "npu1",
    }
    assert [part.activation_lead for part in report.document.devices] == [0, 2]
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned
    calls = [(call.operator, call.call) for call in trace.calls if call.device == "npu1"]
    first_use = min(operator for operator, call in calls if call == "open")
    activated = min(operator for operator, call in calls if call == "activate")
    assert activated == max(first_use - 2, 0)


def test_both_interrupt_driven() -> None:
    devices = [device("npu0", use_interrupt=1), device("npu1", use_interrupt=1)]
    report = ferrule.compile(branches(), backends=["CpuAcc"], hints=HINTS, devices=devices).run(
        [X], check_ownership=True
    )
    assert report.verdict is ferrule.Verdict.EXACT


class Deaf(Fault):
    """The device ignores that its interrupt was handled."""

    @override
    def on_write(self, access: RegisterAccess) -> int | None:
        return None if access.offset == TABLE.register("INTERRUPT").offset else access.value


def test_an_interrupt_that_never_ends_is_masked() -> None:
    """The interrupt would recur before any other instruction runs; the driver continues by polling."""
    npu = device("Woofles", use_interrupt=1)
    firmware = ferrule.compile(branches(), backends=["Woofles", "CpuAcc"], devices=[npu])
    assert firmware.run([X], faults={"Woofles": Deaf()}, timeout_s=20).verdict is ferrule.Verdict.EXACT


def ferrule_run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "--backends", "Woofles,CpuAcc"])
    return int(ended.value.code or 0)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table and the JSON list the device and the time of each layer."""
    model, report = tmp_path / "branches.tflite", tmp_path / "report.json"
    model.write_bytes(to_tflite(branches()))
    assert ferrule_run(str(model), "--json", str(report)) == 0
    table = capsys.readouterr().out
    assert "woofles_add" in table
    assert "device Woofles" in table
    document = msgspec.json.decode(report.read_bytes(), type=ReportDocument)
    assert [layer.device for layer in document.layers].count("Woofles") == 3
    spans = {(span.track, span.layer) for span in document.timeline}
    assert {layer for track, layer in spans if track == "Woofles"} == {
        layer.name for layer in document.layers if layer.device == "Woofles"
    }
    assert sum(span.end - span.start for span in document.timeline if span.track == "core") == sum(
        layer.elapsed for layer in document.duration.layers
    )
    (region,) = document.plan
    assert region.peak_bytes == document.memory.ram.workspace
    assert region.steps == tuple(layer.name for layer in document.layers)
    assert {name for part in document.refusals for name in part.reasons} == {"Woofles"}
    assert document.environment is not None
    assert document.environment.commands == (
        "ferrule run branches.tflite --json report.json --backends Woofles,CpuAcc",
    )
    page = tmp_path / "report.html"
    assert ferrule_run(str(model), "--fault", "Woofles:wrong-id", "--html", str(page)) == 2
    assert "UNAVAILABLE" in page.read_text(encoding="utf-8")
    assert "UNAVAILABLE" in capsys.readouterr().err
    assert ferrule_run(str(model), "--fault", "Woofles:wrong-id", "--fault", "Woofles:never-done") == 2
    assert "has a fault already" in capsys.readouterr().err
