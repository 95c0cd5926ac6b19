# SPDX-License-Identifier: Apache-2.0
"""Models with layers on an accelerator behind the board's second UART: exact outputs, and a complete report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from needs import require_module
from small_networks import dense

import ferrule
from ferrule.backends.device import BackendId
from ferrule.backends.registry import default_registry
from ferrule.backends.target import Face, default_target
from ferrule.cli.main import main
from ferrule.formats import to_tflite
from ferrule.report import ReportDocument

TARGET = default_target(BackendId("UartWoofles"), Face.FIRMWARE)

pytestmark = [pytest.mark.cc, pytest.mark.emu]

RUNS = [
    pytest.param("kws_ref_model", "mps2-an386", "unicorn", marks=pytest.mark.nightly),
    ("ad01_int8", "mps2-an505", "unicorn"),
    ("ad01_int8", "mps2-an386", "qemu"),
    pytest.param("pretrainedResnet_quant", "mps2-an505", "unicorn", marks=pytest.mark.nightly),
    pytest.param("vww_96_int8", "mps2-an386", "unicorn", marks=pytest.mark.nightly),
]
"""Model, board and engine. QEMU takes about 40 us per byte of a UART, so the smallest model runs there."""


def check(report: ferrule.RunReport, network: ferrule.Network) -> None:
    """Check that the result is exact, and that the report has each layer the accelerator supports as run by it."""
    assert report.verdict is ferrule.Verdict.EXACT
    support = default_registry().create("UartWoofles").layer_support()
    taken = {layer.name for layer in network.layers if support.supports(network, layer, TARGET)}
    ran = [layer for layer in report.layers if layer.backend == "UartWoofles"]
    assert {layer.name for layer in ran if layer.type != "MEM_COPY"} == taken
    (device,) = report.document.devices
    assert (device.name, device.layers) == ("UartWoofles", len(ran))
    assert device.count == sum(layer.count for layer in ran) > 0
    assert 0 < device.memory_used <= device.memory_bytes


@pytest.mark.parametrize(("model", "board", "engine"), RUNS)
def test_trained_models(
    models: Path, model: str, board: str, engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    if engine == "unicorn":
        require_module("unicorn", "pip install 'ferrule[run]'")
    else:
        request.getfixturevalue("qemu")
    network = ferrule.load(models / f"{model}.tflite")
    firmware = ferrule.compile(network, board=board, backends=["UartWoofles", "CpuAcc"], out=tmp_path / "project")
    check(firmware.run(engine=engine, timeout_s=200), network)


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "dense.tflite").write_bytes(to_tflite(dense()))
    (tmp_path / "ferrule.toml").write_text(
        '[devices.far]\nbackend = "UartWoofles"\n'
        'binding = { uart = "uart3", memory_bytes = 4096, store_bytes = 4096 }\n'
    )
    with pytest.raises(SystemExit) as left:
        main(["run", "dense.tflite", "--backends", "UartWoofles,CpuAcc", "--json", "r.json", "--trace-devices"])
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert "UartWoofles/far" in shown
    assert "device calls: as planned" in shown
    report = msgspec.json.decode((tmp_path / "r.json").read_bytes(), type=ReportDocument)
    (device,) = report.devices
    assert (device.name, device.backend, device.memory_bytes) == ("far", "UartWoofles", 4096)
