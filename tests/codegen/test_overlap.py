# SPDX-License-Identifier: Apache-2.0
"""Layers are ordered so that devices work beside the core, and results are collected before they are needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_networks import SCALE, int8_input

from ferrule import Network
from ferrule.backends import BackendId, Device
from ferrule.backends.cpu_acc.backend import CpuAccTarget
from ferrule.backends.firmware import DeviceDriver, FirmwareTarget, LoweredOp, LoweringContext
from ferrule.backends.target import Face, Target
from ferrule.codegen import Artifact, Plan, generate
from ferrule.codegen.overlap import Arrangement, Task, arrange
from ferrule.dom import Call, Identifier
from ferrule.memory import ArenaOverflowError

DEPTHS = {"a": 1, "b": 3}
NPU = BackendId("Npu")


@st.composite
def problems(draw: st.DrawFn, most: int = 9) -> list[Task]:
    """Return tasks in a valid order: on the core, views, on devices that go on, and on one that the core waits for."""
    tasks: list[Task] = []
    for number in range(draw(st.integers(1, most))):
        needs = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        device, begins, idle = draw(
            st.sampled_from(
                [(None, False, False), (None, False, True), ("a", True, False), ("b", True, False), ("b", False, False)]
            )
        )
        for need in tuple(needs):  # a reader of a view reads what its source's writer wrote
            if tasks[need].device is None and not tasks[need].cycles:
                needs |= set(tasks[need].needs)
        cycles = 0 if idle else draw(st.integers(1, 100))
        copies = begins and draw(st.booleans())
        tasks.append(Task(cycles=cycles, needs=tuple(sorted(needs)), device=device, begins=begins, copies=copies))
    return tasks


def replayed(tasks: Sequence[Task], found: Arrangement) -> int:
    """Check an arrangement step by step as the executor carries it out, and return the time of the run."""
    assert sorted(found.order) == list(range(len(tasks)))
    position = {number: place for place, number in enumerate(found.order)}
    now = 0
    done: dict[int, int] = {}
    """By task that was begun and not collected: when its device is done with it."""
    for place, number in enumerate(found.order):
        task = tasks[number]
        assert all(position[need] < place for need in task.needs)
        queue = [each for each in done if tasks[each].device == task.device] if task.device is not None else []
        if task.cycles:
            assert all(
                tasks[each].device == task.device and number in found.ends and not task.copies
                for each in task.needs
                if each in done
            )
        if number in found.ends:
            assert task.begins
            assert len(queue) < DEPTHS[str(task.device)]
            done[number] = max([now, *(done[each] for each in queue)]) + task.cycles
        else:
            assert queue == []  # the call waits for the oldest result of its device, which must be its own
            now += task.cycles
        for each in [each for each in done if found.ends[each] == place]:
            oldest = next(other for other in done if tasks[other].device == tasks[each].device)
            assert each == oldest
            now = max(now, done.pop(each))
    assert done == {}
    return now


def alone(tasks: Sequence[Task]) -> int:
    return sum(task.cycles for task in tasks)


@given(problems())
@example([])
def test_arrangements_are_valid_and_take_the_stated_time(tasks: list[Task]) -> None:
    found = arrange(tasks, DEPTHS)
    assert replayed(tasks, found) == found.cycles <= alone(tasks)


def chain(cycles: Sequence[int], device: str | None = None, *, first: int) -> list[Task]:
    """Return tasks each of which needs the one before; the first one needs task 0."""
    needs = [0, *range(first, first + len(cycles) - 1)]
    return [
        Task(cycles=each, needs=(need,), device=device, begins=device is not None)
        for each, need in zip(cycles, needs, strict=True)
    ]


BRANCHES = {
    "one at a time": ([*chain([100] * 3, "a", first=1), *chain([90] * 3, first=4)], 310),
    "a queue": ([*chain([100] * 3, "b", first=1), *chain([250, 20], first=4)], 310),
    "two devices": (
        [*chain([100] * 2, "a", first=1), *chain([60] * 3, "b", first=3), *chain([40, 50, 70], first=6)],
        210,
    ),
    "the core is longer": ([*chain([50] * 3, "a", first=1), *chain([100] * 3, first=4)], 310),
}


@pytest.mark.parametrize("case", BRANCHES)
def test_branches_take_as_long_as_the_longest_one(case: str) -> None:
    branches, expected = BRANCHES[case]
    tasks = [Task(cycles=10), *branches]
    found = arrange(tasks, DEPTHS)
    assert replayed(tasks, found) == expected


def test_a_chain_is_left_as_it_is() -> None:
    """Nothing runs beside its devices, so each call waits."""
    tasks = [
        Task(cycles=10),
        Task(cycles=50, needs=(0,), device="a", begins=True),
        Task(cycles=0, needs=(1,)),
        Task(cycles=50, needs=(1, 2), device="b", begins=True),
        Task(cycles=10, needs=(3,)),
    ]
    assert arrange(tasks, DEPTHS) == Arrangement(order=(0, 1, 2, 3, 4), ends={}, cycles=120)


def test_an_order_that_saves_next_to_nothing_is_not_taken() -> None:
    tasks = [Task(cycles=1000), Task(cycles=5, device="a", begins=True)]
    assert arrange(tasks, DEPTHS).order == (0, 1)


# ---- in generated code


class NpuTarget:
    """Runs any layer on a device that goes on beside the core, with its own memory if it has some."""

    def __init__(self, depth: int = 1, memory_bytes: int = 0) -> None:
        self.depth, self.memory_bytes = depth, memory_bytes

    def lower(self, context: LoweringContext) -> LoweredOp:
        run, begin = (Call(Identifier(name), (context.resource_handle,)) for name in ("npu_run", "npu_begin"))
        return LoweredOp(kernel="npu", status=run, start=begin, cycles=600, timeout_us=777, scratch_bytes=64)

    def driver(self, device: Device) -> DeviceDriver:
        return DeviceDriver(
            driver="npu_driver",
            header="npu.h",
            context="npu",
            depth=self.depth,
            memory_bytes=self.memory_bytes,
            copies_beside=self.depth > 0 and self.memory_bytes > 0,
        )


def forked(layers: int = 2) -> Network:
    """Return a network with a branch `n0`, `n1`, ... and a branch `c0`, `c1`, ..., both after `common`."""
    network = Network("forked")
    network.add_input(int8_input("x", 1, 64))
    network.add_relu_layer("x", quantization=SCALE, name="common")
    for branch in "nc":
        last = "common"
        for number in range(layers):
            network.add_tanh_layer(last, name=f"{branch}{number}")
            last = f"{branch}{number}"
    network.set_outputs([f"n{layers - 1}", f"c{layers - 1}"])
    return network


def emitted(
    network: Network, npu: FirmwareTarget, *, overlap: bool = True, workspace_bytes: int = sys.maxsize
) -> Artifact:
    def device(name: str) -> Device:
        on_npu = name[0] == "n" or "(" in name
        return Device(name="npu0" if on_npu else "CpuAcc", backend=NPU if on_npu else BackendId("CpuAcc"))

    names = [layer.name for layer in network.layers]
    return generate(
        Plan(
            graph=network,
            firmware={name: npu if device(name).backend == NPU else CpuAccTarget() for name in names},
            targets={name: Target(face=Face.FIRMWARE, device=device(name)) for name in names},
            workspace_bytes=workspace_bytes,
            overlap=overlap,
        )
    )


def calls(model: Artifact) -> list[str]:
    """Return the layers in order, each with the calls of its own and of finishes."""
    return [
        " ".join((record.layer, *(str(call) for call in record.device_calls if str(call).endswith(("run", "finish")))))
        for record in model.operators
    ]


def test_the_executor_begins_and_collects() -> None:
    model = emitted(forked(), NpuTarget())
    assert calls(model) == [
        "common",
        "n0 1 npu0 run",
        "c0 1 npu0 finish",
        "n1 3 npu0 run",
        "c1 3 npu0 finish",
    ]
    code = model.files["ferrule_forked.c"]
    assert code.count("npu_begin(held->handles[DEVICE_NPU0])") == 2
    assert "npu_run" not in code
    assert "status = ferrule_held_finish(held, DEVICE_NPU0, 1, 777U);" in code
    lives = {request.name: request.lifetime for request in model.storage.requests}
    scratch, output = lives["n0:scratch"], lives["n0"]
    assert ((scratch.first, scratch.last), (output.first, output.last)) == ((1, 2), (1, 4))


def test_a_device_with_a_queue_gets_its_commands_at_once() -> None:
    """The second command reads what the first one writes, since the device works in order."""
    assert calls(emitted(forked(), NpuTarget(depth=2))) == [
        "common",
        "n0 1 npu0 run",
        "n1 2 npu0 run",
        "c0",
        "c1 1 npu0 finish 2 npu0 finish",
    ]


@pytest.mark.parametrize("target", [NpuTarget(depth=0), NpuTarget(depth=1)], ids=["never begins", "off"])
def test_without_it_the_executor_is_the_same(target: NpuTarget) -> None:
    """A device that does not go on beside the core has the same executor with and without the option."""
    plain = emitted(forked(), target, overlap=target.depth == 0)
    assert not any("finish" in call for call in calls(plain))
    code = plain.files["ferrule_forked.c"]
    assert (code.count("npu_run("), "npu_begin" in code, "held_finish" in code) == (2, False, False)
    assert plain.files == emitted(forked(), NpuTarget(depth=0), overlap=False).files


def test_a_chain_of_layers_has_the_same_executor() -> None:
    network = Network("straight")
    network.add_input(int8_input("x", 1, 64))
    network.add_relu_layer("x", quantization=SCALE, name="c0")
    network.add_tanh_layer("c0", name="n0")
    network.add_reshape_layer("n0", (8, 8), name="view")
    network.add_tanh_layer("view", name="n1")
    network.add_tanh_layer("n1", name="c1")
    network.set_outputs(["c1"])
    for depth in (1, 3):
        assert emitted(network, NpuTarget(depth)).files == emitted(network, NpuTarget(depth), overlap=False).files


def test_too_little_memory_names_the_option() -> None:
    """One branch after the other needs less memory than both at once."""
    serial = emitted(forked(4), NpuTarget(), overlap=False).workspace_bytes
    beside = emitted(forked(4), NpuTarget(depth=3))
    assert beside.workspace_bytes > serial
    assert emitted(forked(4), NpuTarget(), overlap=False, workspace_bytes=serial).workspace_bytes == serial
    with pytest.raises(ArenaOverflowError) as caught:
        emitted(forked(4), NpuTarget(depth=3), workspace_bytes=serial)
    assert caught.value.hint is not None
    assert 'overlap="off"' in caught.value.hint
