# SPDX-License-Identifier: Apache-2.0
"""A model on two devices of one kind, on emulated boards: exact outputs, and device calls as planned."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from device_bench import planned
from device_networks import HINTS, NPU0, NPU1, crossing, sample
from needs import require_module

import ferrule
from ferrule.cli.main import main
from ferrule.codegen.schedule import Call
from ferrule.emulation import Machine, engine
from ferrule.firmware import build_project, load_project
from ferrule.formats import to_tflite
from ferrule.link import LinkSession, RunFailedError
from ferrule.report import ReportDocument

pytestmark = [pytest.mark.cc, pytest.mark.emu]
Build = Callable[[str], ferrule.Firmware]
CONFIGURATION = """
[devices.npu0]
backend = "SoftNpu"
binding = { memory_bytes = 4096 }

[devices.npu1]
backend = "SoftNpu"
binding = { memory_bytes = 2048 }
activation_lead = 4
"""


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    require_module("ziglang", "pip install 'ferrule[run]'")
    built: dict[str, ferrule.Firmware] = {}

    def function(board: str) -> ferrule.Firmware:
        if board not in built:
            folder = tmp_path_factory.mktemp(board) / "project"
            built[board] = ferrule.compile(
                crossing(), board=board, backends=["CpuAcc"], hints=HINTS, devices=(NPU0, NPU1), out=folder
            )
        return built[board]

    return function


@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an505"])
@pytest.mark.parametrize("name", ["unicorn", "qemu"])
def test_exact_and_as_planned(build: Build, board: str, name: str, request: pytest.FixtureRequest) -> None:
    if name == "unicorn":
        require_module("unicorn", "pip install 'ferrule[run]'")
    else:
        request.getfixturevalue("qemu")
    firmware = build(board)
    samples = [np.concatenate([sample(0), sample(1)])]
    report = firmware.run(samples, engine=name, trace_devices=True, check_ownership=name == "unicorn")
    assert report.verdict is ferrule.Verdict.EXACT
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned
    made = [(call.operator, call.device, call.call, call.status) for call in trace.calls]
    assert made == planned(firmware.artifact.device_calls)
    first_use = next(call.operator for call in trace.calls if (call.device, call.call) == ("npu1", "open"))
    activation = next(call.operator for call in trace.calls if (call.device, call.call) == ("npu1", "activate"))
    assert activation <= max(first_use - 2, 0)
    assert {(layer.backend, layer.device) for layer in report.layers} == {
        ("CpuAcc", "CpuAcc"),
        ("SoftNpu", "npu0"),
        ("SoftNpu", "npu1"),
    }
    assert [(device.name, device.memory_bytes) for device in report.document.devices] == [
        ("npu0", 4096),
        ("npu1", 2048),
    ]
    assert all(0 < device.memory_used <= device.memory_bytes for device in report.document.devices)


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crossing.tflite").write_bytes(to_tflite(crossing()))
    (tmp_path / "ferrule.toml").write_text(CONFIGURATION)
    imported = ferrule.load(tmp_path / "crossing.tflite").layers  # imported layers have other names, but the same order
    names = {layer.name: found.name for layer, found in zip(crossing().layers, imported, strict=True)}
    hints = [word for layer, wish in HINTS.items() for word in ("--hint", f"{names[layer]}={wish}")]
    with pytest.raises(SystemExit) as left:
        main(["run", "crossing.tflite", *hints, "--trace-devices", "--json", "report.json"])
    assert left.value.code == 0
    assert "device calls: as planned" in capsys.readouterr().out
    report = msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=ReportDocument)
    assert report.device_trace is not None
    calls = report.device_trace.calls
    opened = next(call.operator for call in calls if (call.device, call.call) == ("npu1", "open"))
    activation = next(call.operator for call in calls if (call.device, call.call) == ("npu1", "activate"))
    assert activation <= max(opened - 4, 0)
    assert {call.call for call in calls} == {str(call) for call in Call} - {"finish"}


FAULTS = """
/* Every second run fails: run 2 at the drivers' first call, run 4 at the second, and so on. The first call of a run
 * activates npu0. */
static int32_t board_fault(void *context, enum soft_npu_call call, uint32_t number)
{
    static uint32_t runs;
    static uint32_t calls;

    (void)number;
    if (context != NULL && call == SOFT_NPU_ACTIVATE) {
        runs++;
        calls = 0;
    }
    return runs % 2U == 0U && calls++ == runs / 2U - 1U ? -77 : FERRULE_OK;
}
"""


def with_faults(firmware: ferrule.Firmware, folder: Path) -> Path:
    """Build the project again with devices that fail, and return the ELF file."""
    shutil.copytree(firmware.project.folder, folder, ignore=shutil.ignore_patterns("build"))
    path = folder / "devices.c"
    text = path.read_text()
    assert text.count(".bytes = ") == 2
    text = text.replace(".bytes = 4096,", ".bytes = 4096, .fault = board_fault, .fault_context = &npu0_context,")
    text = text.replace(".bytes = 2048,", ".bytes = 2048, .fault = board_fault,")
    path.write_text(text.replace("/* npu0:", f"{FAULTS}\n/* npu0:", 1))
    return build_project(load_project(folder)).path


@pytest.mark.parametrize(
    ("board", "name"), [("mps2-an386", "unicorn"), ("mps2-an505", "unicorn"), ("mps2-an386", "qemu")]
)
def test_faults_on_a_board(build: Build, tmp_path: Path, board: str, name: str, request: pytest.FixtureRequest) -> None:
    if name == "unicorn":
        require_module("unicorn", "pip install 'ferrule[run]'")
    else:
        request.getfixturevalue("qemu")
    firmware = build(board)
    elf = with_faults(firmware, tmp_path / "project")
    failing = [call for call in firmware.artifact.device_calls if call.call is not Call.CLOSE]  # no driver call
    x = sample(5)
    reference = crossing().run([x])
    with (
        engine(name).start(Machine(board=firmware.board, elf=elf)) as guest,
        LinkSession(guest.channel(), timeout_s=10.0) as session,
    ):
        for expected in failing:
            with pytest.raises(RunFailedError, match="status -77") as caught:
                session.run([x], trace=True)
            failed = [call for call in caught.value.calls if call.status != 0]
            assert caught.value.failed_operator == expected.operator, str(expected)
            assert [(call.operator, Call(call.call)) for call in failed] == [(expected.operator, expected.call)]
            result = session.run([x], trace=True)
            assert [output.tobytes() for output in result.outputs] == [output.tobytes() for output in reference]
            assert len(result.calls) == len(firmware.artifact.device_calls)


def test_the_error_names_the_layer_and_lists_the_calls(build: Build, tmp_path: Path) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    firmware = build("mps2-an386")
    with_faults(firmware, tmp_path / "project")
    faulty = replace(firmware, image=build_project(load_project(tmp_path / "project")))
    with pytest.raises(RunFailedError) as caught:
        faulty.run([sample()], trace_devices=True)
    assert str(caught.value).splitlines() == [
        "the run failed in operator 0 with status -77: layer '[ x (0) -> a (0) ]' on SoftNpu/npu0",
        "calls of devices until then:",
        "  0 npu0 activate: -77",
    ]
