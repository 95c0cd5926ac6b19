# SPDX-License-Identifier: Apache-2.0
"""A fault at every device call of a model with two devices: all devices are released, and the next run works."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_bench import FAULT, HELD_C, Bench, build_bench, check_idle, expected_trace, planned
from device_networks import POOL, artifact, crossing, sample
from gate import every
from needs import require_cc, require_module

from ferrule.codegen.schedule import Call

pytestmark = pytest.mark.cc


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_module("cffi", "pip install ferrule[run]")
    return tmp_path_factory.mktemp("bench")


@pytest.fixture(scope="module")
def bench(folder: Path) -> Bench:
    cc = require_cc()
    return build_bench(artifact(), folder, cc, flags=("-fsanitize=undefined", "-fno-sanitize-recover=all"))


CALLS = artifact().device_calls


def check_run(bench: Bench, seed: int = 0) -> None:
    """Run without a fault: the calls follow the schedule, outputs equal the reference, no device stays in use."""
    x = sample(seed)
    outcome = bench.run({"x": x})
    assert (outcome.status, outcome.failed_operator) == (0, None)
    assert outcome.trace == planned(bench.artifact.device_calls)
    for (name, data), reference in zip(outcome.outputs.items(), crossing().run([x]), strict=True):
        assert data.tobytes() == reference.tobytes(), name
    check_idle(bench)


def check_fault(bench: Bench, position: int) -> None:
    outcome = bench.run({"x": sample(1)}, fail_at=position)
    assert outcome.status == FAULT
    assert outcome.failed_operator == bench.artifact.device_calls[position].operator
    assert outcome.trace == expected_trace(bench.artifact.device_calls, position)
    check_idle(bench)
    check_run(bench, seed=2)


def check_every_fault(bench: Bench) -> None:
    for position in range(len(CALLS)):
        check_fault(bench, position)


def test_the_model_crosses_in_every_way() -> None:
    kinds = [call.call for call in CALLS]
    assert set(kinds) == set(Call) - {Call.FINISH}  # SoftNpu works in the core's own time
    assert {call.device for call in CALLS} == {"npu0", "npu1"}
    assert kinds[2:4] == [Call.OPEN, Call.OPEN]  # as a set
    assert len(CALLS) == 24


def test_without_a_fault(bench: Bench) -> None:
    for seed in range(3):
        check_run(bench, seed)


@pytest.mark.parametrize("position", range(len(CALLS)), ids=lambda position: str(CALLS[position]).replace(" ", "-"))
def test_a_fault_at_every_call(bench: Bench, position: int) -> None:
    check_fault(bench, position)


def test_a_fault_in_every_call_of_a_driver(bench: Bench) -> None:
    check_run(bench)
    count = bench.library.bench.driver_calls
    assert count == len([call for call in CALLS if call.call is not Call.CLOSE])  # opening calls the driver's check
    for number in range(count):
        outcome = bench.run({"x": sample(3)}, driver_fail_at=number)
        assert outcome.status == FAULT, number
        assert outcome.failed_operator is not None
        failing = [position for position, call in enumerate(outcome.trace) if call[3] != 0]
        assert len(failing) == 1, number
        assert outcome.trace == expected_trace(CALLS, failing[0]), number
        check_idle(bench)
    check_run(bench)


def test_a_call_that_fails_while_giving_back_does_not_hide_the_first_error(bench: Bench) -> None:
    position = next(index for index, call in enumerate(CALLS) if call.call is Call.RUN)
    outcome = bench.run({"x": sample()}, fail_at=position, driver_fail_at=bench_deactivation(bench, position))
    assert outcome.status == FAULT
    assert outcome.failed_operator == CALLS[position].operator
    assert [call[2] for call in outcome.trace if call[3] != 0] == ["run", "deactivate"]
    check_idle(bench)
    check_run(bench)


def bench_deactivation(bench: Bench, position: int) -> int:
    """Return the number of the driver call that deactivates the last released device after a fault at `position`."""
    bench.run({"x": sample()}, fail_at=position)
    return int(bench.library.bench.driver_calls) - 1


def test_what_the_user_activated_stays_active(bench: Bench) -> None:
    for handle in bench.handles.values():
        assert bench.library.ferrule_device_activate(handle) == 0
    position = next(index for index, call in enumerate(CALLS) if call.call is Call.COPY_FROM)
    assert bench.run({"x": sample()}, fail_at=position).status == FAULT
    assert bench.activations() == {"npu0": 1, "npu1": 1}
    assert bench.run({"x": sample()}).status == 0
    assert bench.activations() == {"npu0": 1, "npu1": 1}
    for handle in bench.handles.values():
        assert bench.library.ferrule_device_deactivate(handle) == 0
    check_run(bench)


def test_a_device_that_the_user_holds_open_is_left_open(bench: Bench) -> None:
    handle = bench.handles["npu1"]
    assert bench.library.ferrule_device_activate(handle) == bench.library.ferrule_device_open(handle) == 0
    outcome = bench.run({"x": sample()})
    position = next(index for index, call in enumerate(CALLS) if (call.device, call.call) == ("npu1", Call.OPEN))
    assert outcome.status == -7  # FERRULE_ERR_STATE: the same thread has it open already
    assert outcome.failed_operator == CALLS[position].operator
    assert bench.open_devices() == {"npu1"}
    assert bench.activations() == {"npu0": 0, "npu1": 1}
    assert bench.library.ferrule_device_close(handle) == bench.library.ferrule_device_deactivate(handle) == 0
    check_run(bench)


def test_a_null_device_is_refused(bench: Bench) -> None:
    devices = bench.library.bench_devices
    handle, devices.npu1 = devices.npu1, bench.ffi.NULL
    try:
        outcome = bench.run({"x": sample()})
    finally:
        devices.npu1 = handle
    assert (outcome.status, outcome.trace) == (-1, [])
    library, ffi = bench.library, bench.ffi
    parts = [ffi.addressof(getattr(library, f"ferrule_crossing_default_{part}")) for part in ("inputs", "outputs")]
    memory = ffi.addressof(library.ferrule_crossing_default_memory)
    assert library.ferrule_crossing_run(*parts, memory, ffi.NULL, ffi.NULL) == -1


def test_one_handle_in_two_members_is_refused(bench: Bench) -> None:
    devices = bench.library.bench_devices
    handle, devices.npu1 = devices.npu1, devices.npu0
    try:
        outcome = bench.run({"x": sample()})
    finally:
        devices.npu1 = handle
    assert (outcome.status, outcome.trace) == (-1, [])
    check_run(bench)


def test_a_pool(folder: Path, host_cc: tuple[str, ...]) -> None:
    model = artifact(POOL)
    bench = build_bench(model, folder / "pool", host_cc)
    check_run(bench)
    for position, call in enumerate(model.device_calls):
        if call.call in {Call.ACTIVATE, Call.OPEN, Call.CLOSE}:
            check_fault(bench, position)
    handle = bench.handles["npu0"]
    assert bench.library.ferrule_device_activate(handle) == bench.library.ferrule_device_open(handle) == 0
    assert bench.run({"x": sample()}).status == -7  # FERRULE_ERR_STATE: the same thread has a member open already
    assert bench.library.ferrule_device_close(handle) == bench.library.ferrule_device_deactivate(handle) == 0
    check_run(bench)


def test_more_than_there_is_room_for_is_refused(bench: Bench) -> None:
    library, ffi = bench.library, bench.ffi
    handles = ffi.new("struct ferrule_device *[]", list(bench.handles.values()))
    entries = ffi.new("struct ferrule_held_entry[1]")
    fields = {"handles": handles, "entries": entries, "capacity": 1}
    held = ffi.new("struct ferrule_held *", fields)  # without info: no callback
    library.bench.fail_at = library.bench.driver_fail_at = 2**32 - 1
    assert library.ferrule_held_activate(held, 0) == 0
    assert library.ferrule_held_open(held, 0) == -3  # FERRULE_ERR_MEMORY
    assert library.ferrule_held_activate(held, 1) == -3
    assert (bench.open_devices(), bench.activations()) == (set(), {"npu0": 1, "npu1": 0})
    assert library.ferrule_held_end(held, -3) == -3
    check_idle(bench)


MUTANTS = {
    "no close on an operator's error": ("left > 0; left--", "left > 0 && status == 0; left--"),
    "given back in the order of taking": ("&held->entries[left - 1]", "&held->entries[0]"),
    "a later error wins": ("first = first != FERRULE_OK ? first : given;", "first = given;"),
    "the operator is forgotten": ("ferrule_run_fail(held->info, held->index, first)", "first"),
    "what could not be opened is held": (
        "status = ferrule_device_open_in_turn(held->handles[device], timeout_us, held->stop, kept);\n"
        "        if (status == FERRULE_OK) {",
        "status = ferrule_device_open_in_turn(held->handles[device], timeout_us, held->stop, kept);\n        {",
    ),
    "a set of which one is not opened is still held": (
        "(void)ferrule_held_close(held, held->entries[held->count - 1u].device);",
        "held->count--;",
    ),
    "what could not be activated is held": (
        "status = ferrule_device_activate(held->handles[device]);\n        if (status == FERRULE_OK) {",
        "status = ferrule_device_activate(held->handles[device]);\n        {",
    ),
    "what was closed is still held": ("    drop(held, device, FERRULE_CALL_CLOSE);\n", ""),
    "what was deactivated is still held": ("    drop(held, device, FERRULE_CALL_DEACTIVATE);\n", ""),
    "closing drops the activation too": (
        "held->entries[i].device != device || held->entries[i].call != call",
        "held->entries[i].device != device",
    ),
    "the trace leaves out what fails": (
        "if (info != NULL && info->on_device != NULL) {",
        "if (info != NULL && info->on_device != NULL && status == FERRULE_OK) {",
    ),
}


@pytest.mark.parametrize("name", every(2, MUTANTS))
def test_mutants_are_found(folder: Path, host_cc: tuple[str, ...], name: str) -> None:
    old, new = MUTANTS[name]
    text = HELD_C.read_text()
    assert text.count(old) == 1
    place = folder / name.replace(" ", "_").replace("'", "")
    place.mkdir()
    (place / "held.c").write_text(text.replace(old, new))
    flags = ("-Wno-unused-function", "-Wno-unused-parameter", "-Wno-unused-but-set-variable")
    mutant = build_bench(artifact(), place, host_cc, held_c=place / "held.c", flags=flags)
    with pytest.raises(AssertionError):
        check_every_fault(mutant)
