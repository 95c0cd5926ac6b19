# SPDX-License-Identifier: Apache-2.0
"""Arm's driver, unmodified, on emulated boards: the MLPerf Tiny models, both ways to wait, other platforms; exact."""

from __future__ import annotations

import json
import os
from pathlib import Path

import cmsis_project
import pytest
from covering import covering
from device_networks import BRANCH_HINTS, BRANCHES, two_branches
from needs import MODELS_SOURCE, lacking, require_module, require_variable
from small_networks import dense
from zephyr_tree import TEST_TIMEOUT_S, zephyr_tree

import ferrule
from ferrule.backends import BackendId, Device
from ferrule.backends.ethos_u.arm_driver import VARIABLE
from ferrule.errors import FerruleError
from ferrule.firmware import Job, emit

pytestmark = [pytest.mark.cc, pytest.mark.emu]

MODELS = ("ad01_int8", "kws_ref_model", "vww_96_int8", "pretrainedResnet_quant")
CONFIGURATIONS = ("ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512")


@pytest.fixture(autouse=True)
def tools() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    require_module("ethosu.vela", "pip install 'ferrule[ethos-u]'")
    require_variable(VARIABLE)


def npu(name: str = "npu0", **binding: str | int) -> Device:
    return Device(name=name, backend=BackendId("EthosU"), binding={"driver": "arm", **binding})


def model(name: str) -> Path:
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    return Path(folder) / f"{name}.tflite"


@covering(
    "use_interrupt, board, name, configuration",
    (1, 0),
    ("mps2-an505", "mps2-an500"),
    MODELS,
    CONFIGURATIONS,
    seed=1,
    sentinel=(1, "mps2-an505", "kws_ref_model", "ethos-u55-128"),
    gate=4,
)
def test_the_mlperf_tiny_models(use_interrupt: int, board: str, name: str, configuration: str) -> None:
    device = npu(configuration=configuration, use_interrupt=use_interrupt)
    firmware = ferrule.compile(model(name), board=board, backends=["EthosU", "CpuAcc"], devices=[device])
    report = firmware.run(trace_devices=True, check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert [layer.device for layer in report.layers] == ["npu0"]
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned


def test_what_the_driver_costs() -> None:
    """More flash than Ferrule's own driver, and more instructions of a run; the core sleeps while the NPU works."""
    figures = {}
    for driver in ("arm", "ferrule"):
        device = npu(use_interrupt=1, driver=driver)
        report = ferrule.compile(
            model("kws_ref_model"), board="mps2-an505", backends=["EthosU"], devices=[device]
        ).run()
        assert report.verdict is ferrule.Verdict.EXACT
        assert report.memory.flash is not None
        figures[driver] = (report.count.per_inference, report.memory.flash.total)
    instructions, flash = (arm - own for arm, own in zip(figures["arm"], figures["ferrule"], strict=True))
    assert 0 < instructions < 1000
    assert 0 < flash < 2048


def test_a_branch_of_the_core_runs_meanwhile() -> None:
    """An invocation begins the work, and the executor collects it before the branches meet."""
    hints = {name: "EthosU" if backend == "Woofles" else backend for name, backend in BRANCH_HINTS.items()}
    devices = [npu("EthosU", use_interrupt=1)]
    options = {"board": "mps2-an505", "backends": ["EthosU", "CpuAcc"], "hints": hints, "devices": devices}
    report = ferrule.compile(two_branches(), **options).run(trace_devices=True)
    assert report.verdict is ferrule.Verdict.EXACT
    beside = {name for layer in report.layers for name in layer.beside}
    assert len(beside) == 1
    counts = {layer.name: layer.count for layer in report.layers}
    core = sum(counts[name] for name in (*BRANCHES[0], *BRANCHES[2]))
    assert report.count.per_inference < 1.2 * core
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned
    assert [call.layer for call in trace.calls if call.call == "finish"] == list(beside)


@pytest.mark.slow
@pytest.mark.timeout(TEST_TIMEOUT_S)
@pytest.mark.parametrize("platform", ["cmsis", "zephyr"])
def test_in_a_thread(platform: str) -> None:
    if platform == "zephyr":
        board = zephyr_tree().board_name()
    else:
        cmsis_project.packs()
        board = "mps2-an386"
    job = Job(board=board, platform=platform, backends=("EthosU", "CpuAcc"), devices=(npu(use_interrupt=1),))
    report = ferrule.compile(model("kws_ref_model"), job).run(trace_devices=True, check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    trace = report.document.device_trace
    assert trace is not None
    assert trace.as_planned


def test_the_files_of_a_project(tmp_path: Path) -> None:
    """Arm's files are copied unchanged, with their licence in the bill of materials."""
    job = Job(board="mps2-an505", backends=("EthosU",), devices=(npu(),), out=tmp_path / "project")
    project = ferrule.generate(dense(), job)
    checkout = require_variable(VARIABLE)
    for name in ("src/ethosu_driver.c", "src/ethosu_device_u55_u65.c", "include/ethosu_driver.h"):
        (copy,) = project.folder.rglob(Path(name).name)
        assert copy.read_bytes() == (checkout / name).read_bytes()
    assert not list(project.folder.rglob("ethos_u.c"))
    bill = json.loads((project.folder / "sbom.cdx.json").read_bytes())
    (part,) = (each for each in bill["components"] if each["name"] == "ethos_u_core_driver")
    assert part["licenses"] == [{"expression": "Apache-2.0"}]


def test_both_drivers_in_one_firmware() -> None:
    devices = (npu("npu0"), Device(name="npu1", backend=BackendId("EthosU"), binding={}))
    network = two_branches()
    hints = {"npu0": "EthosU/npu0", "npu1": "EthosU/npu1", "npu2": "EthosU/npu1"}
    job = Job(board="mps2-an505", backends=("CpuAcc",), devices=devices, hints=hints)
    with pytest.raises(FerruleError, match="define ETHOS_U_DRIVER differently: 'arm' and 'ferrule'"):
        emit(network, job)
