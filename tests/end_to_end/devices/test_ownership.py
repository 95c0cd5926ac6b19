# SPDX-License-Identifier: Apache-2.0
"""The check of ownership finds mistakes in a generated executor and a shipped driver, on a core with a data cache."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from gate import some_of
from needs import require_module
from small_networks import int8_input

import ferrule
from ferrule._typing import override
from ferrule.backends import BackendId, Device
from ferrule.backends.woofles import firmware as woofles_firmware
from ferrule.backends.woofles.command import Command
from ferrule.backends.woofles.model import WooflesModel
from ferrule.cli.main import main
from ferrule.codegen import Artifact, Program
from ferrule.emulation import OwnershipError, OwnershipPlan, Violation, ownership_plan
from ferrule.firmware import Image, build_project, emit
from ferrule.formats import to_tflite
from ferrule.report import ReportDocument
from ferrule.running import run

pytestmark = [pytest.mark.cc, pytest.mark.emu]

SCALE = ferrule.Quantization.of(1.0)
X = np.arange(-8, 8, dtype=np.int8).reshape(1, 16)
HINTS = {"left": "Woofles/npu0", "right": "Woofles/npu1", "both": "Woofles/npu1"}
EXECUTOR, DRIVER = Path("model/ferrule_branches.c"), Path("lib/backends/woofles/src/woofles.c")
READS_NOTHING, OVERWRITES, OUTSIDE = Violation.READS_NOTHING, Violation.OVERWRITES, Violation.WRITES_OUTSIDE
UNCLEAN, UNDER, STALE = Violation.READS_UNCLEAN, Violation.WRITES_UNDER, Violation.READS_STALE
OUTSIDE_LAYER, BUSY = Violation.OUTSIDE_LAYER, Violation.ACCESSES_BUSY

CLEANED = "    ferrule_cache_clean(entry, sizeof(*entry));\n    ferrule_port_barrier();\n    set("
CLOSED = "    status = ferrule_held_close"
INVALIDATED = "    ferrule_cache_invalidate(left_out, 16U);\n"
READ_LAST = "    ferrule_cache_invalidate(both, 16U);\n" + CLOSED
CALLED = "    status =\n        woofles_execute"
LOOKUP = "    ferrule_lookup_s8("
SUBMITTED = "layer->command;\n"
SECOND = "ferrule_bus_address(layer->weights != NULL ? layer->weights : work->second)"
OUTPUT, OVER_INPUT = "ferrule_bus_address(work->output)", "ferrule_bus_address(work->input)"

MUTANTS = {
    "a device's output at a wrong offset": (EXECUTOR, "LEFT_OUT_OFFSET = 32", "LEFT_OUT_OFFSET = 36", "left", OUTSIDE),
    "two devices in one place": (EXECUTOR, "RIGHT_OUT_OFFSET = 64", "RIGHT_OUT_OFFSET = 32", "right", OVERWRITES),
    "the core's output at a wrong offset": (EXECUTOR, "CORE_OUT_OFFSET = 32", "CORE_OUT_OFFSET = 40", "core", OUTSIDE),
    "an output over that of a device": (EXECUTOR, "CORE_OUT_OFFSET = 32", "CORE_OUT_OFFSET = 64", "core", OUTSIDE),
    "a result before it is collected": (EXECUTOR, "left_out, core_out)", "right_out, core_out)", "core", READS_NOTHING),
    "an input while a device works": (EXECUTOR, LOOKUP, "    *(int8_t *)x = 0;\n" + LOOKUP, "core", BUSY),
    "input not cleaned": (EXECUTOR, "    ferrule_cache_clean(x, 16U);\n", "", "left", UNCLEAN),
    "later input not cleaned": (EXECUTOR, "    ferrule_cache_clean(core_out, 16U);\n", "", "both", UNCLEAN),
    "output not invalidated": (EXECUTOR, INVALIDATED + CLOSED, CLOSED, "core", STALE),
    "network's output not invalidated": (EXECUTOR, READ_LAST, CLOSED, "", STALE),
    "dirty lines under the output": (EXECUTOR, CALLED, "    left_out[0] = 1;\n" + CALLED, "left", UNDER),
    "command not cleaned": (DRIVER, CLEANED, "    set(", "left", UNCLEAN),
    "too many elements": (DRIVER, SUBMITTED, SUBMITTED + "    entry->count += 4u;\n", "left", READS_NOTHING),
    "an operand at a wrong place": (DRIVER, SECOND, SECOND + " + 4u", "left", READS_NOTHING),
    "an output over the input": (DRIVER, OUTPUT, OVER_INPUT, "left", OVERWRITES),
}
"""By mistake: the file, the text, its replacement, the layer in which it is found, and how it breaks the rules."""


def branches() -> ferrule.Network:
    """Return a network that crosses between the core and two devices."""
    network = ferrule.Network("branches")
    network.add_input(int8_input("x", 1, 16))
    left = network.add_add_layer("x", "x", quantization=SCALE, name="left")
    right = network.add_mul_layer("x", "x", quantization=SCALE, name="right")
    core = network.add_tanh_layer(left, name="core")
    network.set_outputs([network.add_add_layer(core, right, quantization=SCALE, name="both")])
    return network


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> ferrule.Firmware:
    """The network's firmware for a core with a data cache; one device is polled, and the other is not."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    devices = [
        Device(name="npu0", backend=BackendId("Woofles"), binding={"use_interrupt": 1}),
        Device(name="npu1", backend=BackendId("Woofles")),
    ]
    folder = tmp_path_factory.mktemp("branches") / "project"
    return ferrule.compile(
        branches(), board="mps2-an500", backends=["CpuAcc"], hints=HINTS, devices=devices, out=folder
    )


def test_a_right_firmware(firmware: ferrule.Firmware) -> None:
    """The check finds nothing, covers each run, and changes neither outputs nor counts."""
    plain = firmware.run([np.concatenate([X, -X])])
    report = firmware.run([np.concatenate([X, -X])], check_ownership=True)
    assert report.verdict is plain.verdict is ferrule.Verdict.EXACT
    assert report.document.count == plain.document.count
    assert report.layers == plain.layers
    found = report.document.ownership
    assert plain.document.ownership is None
    assert found is not None
    assert (found.inferences, found.cache) == (4, True)  # one at the start, one with counts, and both samples
    assert found.accesses
    assert found.transfers == 4 * found.inferences * 3


def test_the_instruction(firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the core names the instruction, which a second run finds."""

    def wrong_plan(artifact: Artifact, image: Image) -> OwnershipPlan:
        plan = ownership_plan(artifact, image)
        return replace(plan, steps=(*plan.steps[:2], replace(plan.steps[2], reads=()), *plan.steps[3:]))

    monkeypatch.setattr(run, "ownership_plan", wrong_plan)
    with pytest.raises(OwnershipError) as caught:
        firmware.run([X], check_ownership=True)
    error = caught.value
    assert error.exact
    assert (error.violation, error.layer, error.tensor) == (Violation.READS_OTHER, "core", "left")
    assert firmware.image.describe(error.pc).startswith("ferrule_lookup_s8")
    load = int.from_bytes(firmware.image.read(error.pc, 2), "little")
    assert load >> 11 in {0b01111, 0b11111} or load >> 9 in {0b0101011, 0b0101110}, f"{load:#06x} loads no byte"


def test_runs_with_a_deadline(firmware: ferrule.Firmware) -> None:
    """They are other functions, which the programs of users call; here the link does."""
    link = firmware.project.folder / "model" / "ferrule_branches_link.c"
    executor = firmware.project.folder / EXECUTOR
    before, _, old, new, layer, violation = link.read_text(), *MUTANTS["output not invalidated"]
    right = executor.read_text()
    try:
        call = re.sub(r"ferrule_branches_run\(([^;]*)\);", r"ferrule_branches_run_until(\1, SOON);", before)
        head = '#include "ferrule/platform.h"\n#define SOON (ferrule_platform_now_us() + 1000000u)\n'
        link.write_text(head + call)
        assert call != before
        timed = replace(firmware, image=build_project(firmware.project))
        found = timed.run([X], check_ownership=True).document.ownership
        assert found is not None
        assert found.inferences == 3
        assert found.transfers == 4 * found.inferences * 3
        executor.write_text(right.replace(old, new))
        with pytest.raises(OwnershipError) as caught:
            replace(firmware, image=build_project(firmware.project)).run([X], check_ownership=True)
        assert (caught.value.layer, caught.value.violation) == (layer, violation)
    finally:
        link.write_text(before)
        executor.write_text(right)


@pytest.mark.parametrize("mistake", some_of(MUTANTS, ["input not cleaned", "network's output not invalidated"]))
def test_mutants(firmware: ferrule.Firmware, mistake: str) -> None:
    """Each mistake ends the run with an error that names the layer."""
    file, old, new, layer, violation = MUTANTS[mistake]
    path = firmware.project.folder / file
    text = path.read_text()
    assert text.count(old) == 1
    try:
        path.write_text(text.replace(old, new))
        mutant = replace(firmware, image=build_project(firmware.project))
        with pytest.raises(OwnershipError) as caught:
            mutant.run([X], check_ownership=True)
    finally:
        path.write_text(text)
    assert (caught.value.layer, caught.value.violation) == (layer, violation), str(caught.value)


class Late(WooflesModel):
    """Writes the output of a command once more, some time after the command has ended."""

    def __init__(self) -> None:
        super().__init__()
        self._late: tuple[int, int] | None = None
        """The address, and the cycles until then."""

    @override
    def _finish(self, command: Command) -> None:
        super()._finish(command)
        self._late = command.output, 3000

    @override
    def advance(self, cycles: int) -> None:
        super().advance(cycles)
        if self._late is not None:
            address, left = self._late
            self._late = address, left - cycles
            if left <= cycles:
                self._late = None
                self.bus.write(address, b"\0")

    @override
    def next_event(self) -> int | None:
        events = [super().next_event(), None if self._late is None else max(self._late[1], 1)]
        return min((event for event in events if event is not None), default=None)


def test_a_device_that_writes_after_its_result_was_collected(
    firmware: ferrule.Firmware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(woofles_firmware, "WooflesModel", Late)
    artifact = emit(branches(), firmware.job)
    image = build_project(firmware.project)  # the last mutant's lies there
    late = replace(firmware, artifact=artifact, program=Program(artifacts=(artifact,)), image=image)
    with pytest.raises(OwnershipError) as caught:
        late.run([X], check_ownership=True)
    assert (caught.value.violation, caught.value.device) == (OUTSIDE_LAYER, "npu0")


def write_small_model() -> None:
    network = ferrule.Network("small")
    network.add_input(int8_input("x", 1, 16))
    network.set_outputs([network.add_tanh_layer(network.add_relu_layer("x", name="a"), name="b")])
    Path("small.tflite").write_bytes(to_tflite(network))


def test_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report states what was checked, on the terminal and as JSON."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    require_module("unicorn", "pip install 'ferrule[run]'")
    monkeypatch.chdir(tmp_path)
    write_small_model()
    with pytest.raises(SystemExit) as left:
        main(["run", "small.tflite", "--check-ownership", "--json", "report.json"])
    assert left.value.code == 0
    assert "ownership: 1 inference(s) checked" in capsys.readouterr().out
    report = msgspec.json.decode(Path("report.json").read_bytes(), type=ReportDocument)
    assert report.ownership is not None
    assert not report.ownership.cache


@pytest.mark.usefixtures("qemu")
def test_an_engine_that_cannot_check_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    require_module("ziglang", "pip install 'ferrule[run]'")
    monkeypatch.chdir(tmp_path)
    write_small_model()
    with pytest.raises(SystemExit) as left:
        main(["run", "small.tflite", "--check-ownership", "--engine", "qemu"])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert "engine qemu cannot check ownership" in error
    assert "unicorn" in error
