# SPDX-License-Identifier: Apache-2.0
"""The parts of a report that explain a run: its plan, its timeline, and its environment."""

from __future__ import annotations

import getpass
import platform
from dataclasses import replace
from pathlib import Path

import msgspec
import small_networks
import state_networks
from hypothesis import given
from hypothesis import strategies as st
from saved_documents import run_document

import ferrule
from ferrule.emulation import EngineError
from ferrule.emulation.crash import CrashReport
from ferrule.errors import FerruleError, ModelError, together
from ferrule.firmware import Job, emit
from ferrule.report.document import DeviceWorkPart, LayerPart
from ferrule.report.failure_document import FailureDocument, failure_document
from ferrule.report.inspecting import inspect_network
from ferrule.report.plans import firmware_plan
from ferrule.report.surroundings import environment, with_commands
from ferrule.report.timeline import CORE_TRACK, timeline

LAYER = run_document().layers[0]


def layer(index: int, count: int, busy: int | None, beside: tuple[str, ...] = ()) -> LayerPart:
    """Return a layer on the core, or on the device "npu" if it has a time at work (-1: unknown)."""
    work = None if busy is None or busy < 0 else DeviceWorkPart(read_bytes=0, written_bytes=0, busy=busy)
    device = "CpuAcc" if busy is None else "npu"
    return replace(LAYER, index=index, name=f"l{index}", count=count, device=device, beside=beside, work=work)


def test_a_firmware_plan_has_every_buffer_at_its_place() -> None:
    artifact = emit(small_networks.two_by_two(), Job(board="mps2-an386"))
    (region,) = firmware_plan(artifact)
    plan = artifact.storage.plan
    assert {each.name: each.offset for each in region.buffers} == {
        name: place.offset for name, place in plan.placements.items()
    }
    assert region.peak_bytes == max(each.offset + each.size_bytes for each in region.buffers)
    assert region.bound_bytes <= region.peak_bytes == artifact.workspace_bytes
    assert region.steps == tuple(record.layer for record in artifact.operators)
    assert all(0 <= each.first <= each.last < len(region.steps) for each in region.buffers)
    kinds = {each.name: each.kind for each in region.buffers}
    assert {kinds[info.name] for info in artifact.graph.inputs} == {"input"}
    assert {kinds[info.name] for info in artifact.graph.outputs} == {"output"}
    assert all((kind == "scratch") == name.endswith(":scratch") for name, kind in kinds.items())


def test_states_are_a_region_of_their_own() -> None:
    network = state_networks.stream()
    regions = {each.name: each for each in firmware_plan(emit(network, Job(board="mps2-an386")))}
    assert {each.kind for each in regions["state"].buffers} == {"state"}
    assert {each.name for each in inspect_network(network).plan} == set(regions)  # without a firmware


def test_an_inspection_has_the_plan_of_its_arena() -> None:
    inspection = ferrule.inspect(small_networks.two_by_two())
    (region,) = inspection.plan
    assert inspection.arena is not None
    assert (region.peak_bytes, region.bound_bytes) == (inspection.arena.size_bytes, inspection.arena.bound_bytes)
    assert inspection.environment == environment()


def test_a_layer_on_a_device_keeps_the_core_until_it_ends() -> None:
    spans = timeline([layer(0, 100, None), layer(1, 50, 30), layer(2, 0, None)], ["npu"], exact=True)
    assert [(each.track, each.layer, each.start, each.end, each.exact) for each in spans] == [
        (CORE_TRACK, "l0", 0, 100, True),
        (CORE_TRACK, "l1", 100, 150, True),
        ("npu", "l1", 120, 150, False),
    ]


def test_a_device_goes_on_beside_the_core() -> None:
    layers = [layer(0, 10, 60), layer(1, 40, None, ("l0",)), layer(2, 30, None, ("l0",)), layer(3, 5, None)]
    (span,) = (each for each in timeline(layers, ["npu"], exact=False) if each.track == "npu")
    assert (span.start, span.end) == (10, 70)
    unknown = [replace(layers[0], work=None), *layers[1:]]
    (span,) = (each for each in timeline(unknown, ["npu"], exact=False) if each.track == "npu")
    assert (span.start, span.end) == (0, 80)


@given(st.lists(st.tuples(st.integers(0, 50), st.none() | st.integers(-1, 99), st.integers(0, 3)), max_size=12))
def test_spans_stay_in_the_inference_and_do_not_overlap(rows: list[tuple[int, int | None, int]]) -> None:
    beside: dict[int, list[str]] = {}
    for index, (_, busy, ahead) in enumerate(rows):
        for later in range(index + 1, min(index + 1 + ahead, len(rows))):
            if busy is not None:
                beside.setdefault(later, []).append(f"l{index}")
    layers = [layer(index, row[0], row[1], tuple(beside.get(index, ()))) for index, row in enumerate(rows)]
    spans = timeline(layers, ["npu"], exact=True)
    assert [each.start for each in spans] == sorted(each.start for each in spans)
    for track in (CORE_TRACK, "npu"):
        end = 0
        for span in (each for each in spans if each.track == track):
            assert end <= span.start < span.end <= sum(row[0] for row in rows)
            end = span.end
    assert sum(each.end - each.start for each in spans if each.track == CORE_TRACK) == sum(row[0] for row in rows)


def test_the_environment_names_versions_and_nobody() -> None:
    part = environment()
    assert part.python == platform.python_version()
    assert set(part.packages) >= {"numpy", "msgspec", "flatbuffers"}
    texts = [part.ferrule, part.python, part.platform, *part.packages, *part.packages.values()]
    assert not [text for text in texts if "/" in text or text in {getpass.getuser(), platform.node()}]
    assert str(Path.home()) not in " ".join(texts)
    made = with_commands(run_document(), ["ferrule run x.tflite"])
    assert made.environment is not None
    assert made.environment.commands == ("ferrule run x.tflite",)


def test_a_failure_as_data() -> None:
    report = CrashReport(reason="HardFault", pc=16, symbol="f+0x2", registers={"r0": 1}, notes=("a note",))
    crashed = failure_document(
        EngineError("", report=report), command="run", models=("m.tflite",), board="b", engine="e", faults=("f",)
    )
    assert crashed.crash is not None
    assert crashed.sections().title == "m.tflite"
    assert (crashed.crash.pc, crashed.crash.instruction, crashed.crash.notes) == (16, "", ("a note",))
    assert msgspec.json.decode(msgspec.json.encode(crashed), type=FailureDocument) == crashed
    problems = [ModelError("bad", hint="mend it"), ModelError("worse")]
    for number, problem in enumerate(problems):
        problem.at(f"layer {number}", "CONV_2D")
    refused = failure_document(together(problems, "layers"), command="run")
    assert [(each.place, each.type, each.hint) for each in refused.problems] == [
        ("layer 0", "CONV_2D", "mend it"),
        ("layer 1", "CONV_2D", ""),
    ]
    plain = failure_document(FerruleError("no"), command="run")
    assert (plain.error, plain.sections().title) == ("FerruleError", "run")
