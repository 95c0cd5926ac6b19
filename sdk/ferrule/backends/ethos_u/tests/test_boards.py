# SPDX-License-Identifier: Apache-2.0
"""Ethos-U on emulated boards: the MLPerf Tiny models, the NPU beside the core, two NPUs, memory modes; all exact."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from covering import covering
from device_networks import BRANCHES, two_branches
from needs import MODELS_SOURCE, lacking, require_module
from vela_cases import vela_case

import ferrule
from ferrule import codegen
from ferrule.backends import BackendId, Device
from ferrule.devices import DmaErrorAt
from ferrule.errors import UnsupportedError
from ferrule.firmware import Job, emit
from ferrule.link import RunFailedError
from ferrule.memory import ArenaOverflowError

pytestmark = [pytest.mark.cc, pytest.mark.emu]

MODELS = {"kws_ref_model": 22_192, "ad01_int8": 768, "pretrainedResnet_quant": 51_840, "vww_96_int8": 74_480}
"""Vela's arena for each model on ethos-u55-128, in bytes."""
CONFIGURATIONS = ("ethos-u55-128", "ethos-u55-32", "ethos-u55-64", "ethos-u55-256", "ethos-u65-256", "ethos-u65-512")
GATE = ("kws_ref_model", "mps2-an505", 1, "ethos-u55-128")
HINTS = dict.fromkeys((*BRANCHES[0], *BRANCHES[2]), "CpuAcc") | dict.fromkeys(BRANCHES[1], "EthosU")


@pytest.fixture(autouse=True)
def tools() -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    require_module("ethosu.vela", "pip install 'ferrule[ethos-u]'")


def model_file(model: str) -> Path:
    folder = os.environ.get("FERRULE_MODELS")
    if not folder:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    return Path(folder) / f"{model}.tflite"


def device(name: str = "npu0", **binding: str | int) -> Device:
    return Device(name=name, backend=BackendId("EthosU"), binding=binding)


@covering(
    "model, board, use_interrupt, configuration",
    tuple(MODELS),
    ("mps2-an505", "mps2-an500"),
    (1, 0),
    CONFIGURATIONS,
    seed=3,
    sentinel=GATE,
    gate=1,
)
def test_the_int8_models(model: str, board: str, use_interrupt: int, configuration: str) -> None:
    npu = device(use_interrupt=use_interrupt, configuration=configuration)
    firmware = ferrule.compile(model_file(model), board=board, backends=["EthosU"], devices=[npu])
    report = firmware.run(trace_devices=True, check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert {layer.device for layer in report.layers} == {"npu0"}
    document = report.document
    assert document.device_trace is not None
    assert document.device_trace.as_planned
    (part,) = document.devices
    counts = part.statistics
    assert (counts["streams"], counts["faults"], counts["hazards"]) == (1, 0, 0)
    assert counts["estimated_cycles"] == counts["estimated_cycles_by_vela"] > 0
    if configuration == "ethos-u55-128" and board == "mps2-an505":
        assert document.memory.ram.workspace == MODELS[model]


@pytest.mark.parametrize("use_interrupt", [0, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("board", ["mps2-an505", pytest.param("mps2-an500", marks=pytest.mark.nightly)])
def test_the_npu_works_beside_the_core(board: str, use_interrupt: int) -> None:
    """Vela's time for one branch passes while the core computes the other one."""
    npu = device("EthosU", use_interrupt=use_interrupt)
    firmware = ferrule.compile(two_branches(), board=board, backends=["EthosU", "CpuAcc"], hints=HINTS, devices=[npu])
    report = firmware.run(trace_devices=True)
    assert report.verdict is ferrule.Verdict.EXACT
    (layer,) = (each for each in report.layers if each.device == "EthosU")
    (busy,) = (span for span in report.document.timeline if span.track == "EthosU")
    (core,) = (span for span in report.document.timeline if span.layer == "core0")
    assert busy.layer == layer.name
    both = min(core.end, busy.end) - max(core.start, busy.start)
    assert both > (core.end - core.start) * 9 // 10  # the command lasts from its submission to its collection
    assert [each.name for each in report.layers if each.beside] == ["core0", "core1"]
    assert {name for each in report.layers for name in each.beside} == {layer.name}
    waited = sum(each.count for each in report.layers) + busy.end - busy.start
    assert report.count.per_inference < waited
    assert report.document.devices[0].estimated


@pytest.mark.nightly
def test_an_npu_computes_a_branch_of_resnet_beside_the_core() -> None:
    """The fork and the join are another NPU's; what both branches of it need at other places is copied."""
    hints = {"conv_2d_4": "EthosU/npu1", "conv_2d_5": "EthosU/npu1", "conv_2d_6": "CpuAcc"}
    counts = {}
    for overlap in ("on", "off"):
        firmware = ferrule.compile(
            model_file("pretrainedResnet_quant"),
            board="mps2-an505",
            backends=["EthosU", "CpuAcc"],
            hints=hints,
            devices=[device("npu0"), device("npu1")],
            overlap=overlap,
        )
        report = firmware.run(check_ownership=True)
        assert report.verdict is ferrule.Verdict.EXACT
        counts[overlap] = report.count.per_inference
    assert counts["on"] < counts["off"]


def test_a_branch_on_the_core_divides_what_surrounds_it() -> None:
    """One NPU has the fork, the other branch and the join: the fork becomes a stream of its own."""
    hints = dict.fromkeys(BRANCHES[2], "CpuAcc")
    runs = {}
    for overlap in ("on", "off"):
        npu = device("EthosU")
        firmware = ferrule.compile(
            two_branches(),
            board="mps2-an505",
            backends=["EthosU", "CpuAcc"],
            hints=hints,
            devices=[npu],
            overlap=overlap,
        )
        runs[overlap] = firmware.run(check_ownership=True)
        assert runs[overlap].verdict is ferrule.Verdict.EXACT
        assert bool(firmware.optimized.notes) is (overlap == "on")
    divided, whole = runs["on"], runs["off"]
    fork, *beside = (each.name for each in divided.layers if each.device == "EthosU")
    assert [each.name for each in whole.layers if each.device == "EthosU"] == beside
    assert fork == "common/ethos_u"
    assert {name for each in divided.layers for name in each.beside} == {beside[0]}
    assert divided.count.per_inference < whole.count.per_inference


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("branches", "streams", "workspace"),
    [
        (("conv_2d_6",), 3, 64_592),
        (("conv_2d_10",), 3, 51_840),
        (("conv_2d_6", "conv_2d_10"), 5, 64_592),
        (("conv_2d_4", "conv_2d_5"), 2, 60_032),
        (("conv_2d_8", "conv_2d_9"), 2, 51_840),
        (("conv_2d_1", "conv_2d_2"), 2, 54_576),
    ],
    ids=["6", "10", "6 and 10", "4 and 5", "8 and 9", "1 and 2"],
)
def test_one_npu_beside_each_branch_of_resnet(branches: tuple[str, ...], streams: int, workspace: int) -> None:
    """The NPU's stream is divided where the core's branch is long enough, and what is left for the NPU, too."""
    counts = {}
    for overlap in ("on", "off"):
        firmware = ferrule.compile(
            model_file("pretrainedResnet_quant"),
            board="mps2-an505",
            backends=["EthosU", "CpuAcc"],
            hints=dict.fromkeys(branches, "CpuAcc"),
            devices=[device()],
            overlap=overlap,
        )
        report = firmware.run(trace_devices=True, check_ownership=True)
        assert report.verdict is ferrule.Verdict.EXACT
        assert report.document.device_trace is not None
        assert report.document.device_trace.as_planned
        counts[overlap] = report.count.per_inference
        if overlap == "on":
            assert [layer.device for layer in report.layers].count("npu0") == streams
            assert report.document.memory.ram.workspace == workspace
    if streams > 2:
        assert counts["on"] < 0.97 * counts["off"]
    else:
        assert counts["on"] == counts["off"]


@pytest.mark.nightly
def test_a_division_that_needs_too_much_memory_names_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    given, job = (
        model_file("pretrainedResnet_quant"),
        Job(board="mps2-an505", backends=["EthosU", "CpuAcc"], hints={"conv_2d_6": "CpuAcc"}),
    )
    generate = codegen.generate
    monkeypatch.setattr(codegen, "generate", lambda plan: generate(replace(plan, workspace_bytes=63_000)))
    with pytest.raises(ArenaOverflowError) as caught:
        emit(ferrule.load(given), job)
    assert str(caught.value.hint).count('overlap="off"') == 1
    assert emit(ferrule.load(given), replace(job, overlap="off")).workspace_bytes == 62_768


@pytest.mark.nightly
def test_two_npus() -> None:
    """Each has code for its own configuration, and an address and an interrupt of its own."""
    devices = [
        device("small", configuration="ethos-u55-32", use_interrupt=1),
        device("large", configuration="ethos-u65-512"),
    ]
    hints = HINTS | {"npu1": "CpuAcc", "npu0": "EthosU/small", "npu2": "EthosU/large"}
    firmware = ferrule.compile(two_branches(), backends=["EthosU", "CpuAcc"], hints=hints, devices=devices)
    assert len({use.driver.base for use in firmware.artifact.devices}) == 2
    report = firmware.run(check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert [layer.device for layer in report.layers].count("small") == 1
    assert [layer.device for layer in report.layers].count("large") == 1
    assert all(part.statistics["streams"] == 1 for part in report.document.devices)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("configuration", "mode"),
    [
        ("ethos-u55-128", "Sram_Only"),
        ("ethos-u55-128", "Shared_Sram"),
        ("ethos-u65-256", "Sram_Only"),
        ("ethos-u65-256", "Shared_Sram"),
        ("ethos-u65-256", "Dedicated_Sram"),
    ],
)
def test_memory_modes(configuration: str, mode: str) -> None:
    """With dedicated SRAM, the fast scratch is memory of its own."""
    firmware = ferrule.compile(
        model_file("kws_ref_model"),
        board="mps2-an505",
        backends=["EthosU"],
        devices=[device(configuration=configuration)],
        model_options={"EthosU": {"memory_mode": mode}},
    )
    assert firmware.run(check_ownership=True).verdict is ferrule.Verdict.EXACT


@pytest.mark.nightly
def test_the_staged_part_lies_in_a_memory_of_its_own() -> None:
    firmware = ferrule.compile(
        model_file("kws_ref_model"),
        board="mps2-an386",
        backends=["EthosU"],
        devices=[device(configuration="ethos-u65-256")],
        model_options={"EthosU": {"fast_memory": "psram"}},
    )
    (fast,) = (each for each in firmware.artifact.storage.requests if each.name.endswith(":scratch:fast"))
    assert fast.size_bytes == MODELS["kws_ref_model"]
    assert firmware.artifact.storage.region(fast.name).name == "shared_psram"
    assert firmware.run(check_ownership=True).verdict is ferrule.Verdict.EXACT


def test_the_staged_part_needs_a_memory_of_the_board() -> None:
    with pytest.raises(UnsupportedError, match="scratch 'fast' is wanted in memory 'nope', expected a memory"):
        ferrule.compile(
            model_file("kws_ref_model"),
            board="mps2-an386",
            backends=["EthosU"],
            devices=[device(configuration="ethos-u65-256")],
            model_options={"EthosU": {"fast_memory": "nope"}},
        )


@pytest.mark.nightly
@pytest.mark.parametrize("board", ["mps2-an505", "mps2-an500"])
@pytest.mark.parametrize("case", ["lstm", "lstm16"])
def test_states_are_kept_from_run_to_run(case: str, board: str) -> None:
    network = vela_case(case, 2)
    assert network.states
    firmware = ferrule.compile(network, board=board, backends=["EthosU"], devices=[device(use_interrupt=1)])
    (x,) = network.inputs
    kind = np.dtype(str(x.dtype))
    samples = np.random.default_rng(0).integers(-128, 128, (3, *x.shape[1:])).astype(kind)
    report = firmware.run([samples], check_ownership=True)
    assert report.verdict is ferrule.Verdict.EXACT
    assert len(report.document.samples) == 3
    assert report.memory.arena.state_bytes > 0


@pytest.mark.nightly
def test_a_firmware_for_corstone_300() -> None:
    """It is built only: the NPU is where that platform has it, and its core is none that unicorn emulates."""
    npu = device(base=0x4810_2000, interrupt=56, use_interrupt=1)
    firmware = ferrule.compile(
        model_file("kws_ref_model"), board="mps3-an547", backends=["EthosU", "CpuAcc"], devices=[npu]
    )
    (use,) = firmware.artifact.devices
    assert (use.driver.base, use.driver.interrupt) == (0x4810_2000, 56)
    assert firmware.elf.exists()


def test_a_fault_is_named() -> None:
    """The error of the run has the device's reason, and the next run works."""
    network = two_branches()
    firmware = ferrule.compile(network, backends=["EthosU", "CpuAcc"], hints=HINTS)
    x = np.random.default_rng(1).integers(-128, 128, network.inputs[0].shape).astype(np.int8)
    with pytest.raises(
        RunFailedError, match=r"\(DEVICE\): layer '.*' on EthosU\nEthosU: word \d+ .*: injected"
    ) as error:
        firmware.run([x], faults={"EthosU": DmaErrorAt(at=4)})
    assert "transfer 4 is refused" in str(error.value)
    assert firmware.run([x]).verdict is ferrule.Verdict.EXACT
