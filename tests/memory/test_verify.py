# SPDX-License-Identifier: Apache-2.0
"""The replay accepts no plan that loses a byte."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from chains import build, chain
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from memory_runs import schedule_of_lifetimes

from ferrule.graph import DataType, Graph, TensorInfo
from ferrule.memory import (
    Access,
    Alias,
    AliasKind,
    BufferKind,
    Lifetime,
    MemoryPlan,
    Overlap,
    Placement,
    PlanError,
    Region,
    RegionPlan,
    Request,
    Requirements,
    Schedule,
    ScratchNeed,
    Step,
    plan,
    plan_graph,
    schedule_of_graph,
    verify,
)
from ferrule.memory.lifetimes import lifetimes
from ferrule.operators.table import having
from ferrule.testing.backends.random_networks import random_network

SRAM = (Region(name="sram", size_bytes=200, alignment=2), Region(name="npu", size_bytes=100))


def ask(name: str, size_bytes: int, *, alignment: int = 1, kind: BufferKind = BufferKind.ACTIVATION) -> Request:
    life = Lifetime(first=0, last=0)  # the replay does not use it
    return Request(name=name, size_bytes=size_bytes, lifetime=life, regions=("sram",), alignment=alignment, kind=kind)


def lay(requests: list[Request], offsets: dict[str, int], **others: int) -> MemoryPlan:
    """Return a plan whose figures all agree with the offsets."""
    peak = max(offsets[one.name] + one.size_bytes for one in requests)
    region = RegionPlan(
        region="sram",
        size_bytes=200,
        peak_bytes=peak,
        bound_bytes=1,
        activation_peak_bytes=1,
        activation_bound_bytes=1,
        alignment=4,
    )
    placements = {name: Placement(region="sram", offset=offset) for name, offset in offsets.items()}
    return MemoryPlan(placements=placements, regions=(replace(region, **others),))  # type: ignore[arg-type]


def fault(
    requests: list[Request],
    found: MemoryPlan | dict[str, int],
    *steps: Step,
    inputs: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    aliases: tuple[Alias, ...] = (),
    overlaps: tuple[Overlap, ...] = (),
) -> str:
    """Return the replay's error message for a plan or for offsets; "" if it finds no error."""
    schedule = Schedule(steps=steps, inputs=inputs, outputs=outputs)
    found = lay(requests, found) if isinstance(found, dict) else found
    try:
        verify(found, requests, SRAM, schedule, aliases=aliases, overlaps=overlaps)
    except PlanError as error:
        return str(error)
    return ""


A, B, C = ask("a", 10), ask("b", 10), ask("c", 10)


def test_an_output_over_its_input_is_found() -> None:
    step = Step(name="conv", reads=("a",), writes=("b",))
    assert fault([A, B], {"a": 0, "b": 10}, step, inputs=("a",)) == ""
    assert (
        fault([A, B], {"a": 0, "b": 8}, step, inputs=("a",))
        == "at 'conv': byte 8 of 'a' (offset 8 of region 'sram') has been overwritten by 'b'"
    )


def test_a_buffer_that_is_read_again_later_is_missed() -> None:
    found = lay([A, B, C], {"a": 0, "b": 10, "c": 0})
    steps = (Step(name="one", reads=("a",), writes=("b",)), Step(name="two", reads=("b",), writes=("c",)))
    assert fault([A, B, C], found, *steps, inputs=("a",)) == ""
    assert "byte 0 of 'a'" in fault([A, B, C], found, *steps, Step(name="three", reads=("a",)), inputs=("a",))
    assert fault([A, B, C], found, *steps, inputs=("a",), outputs=("a",)).startswith("after the last step: byte 0")


def test_two_inputs_on_one_place_are_found() -> None:
    assert fault([A, B], {"a": 0, "b": 4}, inputs=("a", "b")).startswith("before the first step: byte 4")


def test_two_outputs_on_one_place_are_found() -> None:
    step = Step(name="split", writes=("a", "b"))
    assert "byte 4 of 'a'" in fault([A, B], {"a": 0, "b": 4}, step)


@pytest.mark.parametrize(
    ("offset", "size_bytes", "access", "message"),
    [
        (32, 32, Access(masters=frozenset({"cpu", "npu"}), alignment=32, line_bytes=32), ""),
        (32, 32, Access(masters=frozenset({"cpu", "dma"})), "region 'sram', which 'dma' does not reach"),
        (16, 32, Access(masters=frozenset({"cpu"}), alignment=32), "expected a multiple of 32 for ['cpu']"),
        (16, 32, Access(masters=frozenset({"cpu"}), line_bytes=32), "expected whole cache lines of 32 B"),
        (32, 30, Access(masters=frozenset({"cpu"}), line_bytes=32), "with 30 B, expected whole cache lines of 32 B"),
    ],
)
def test_what_masters_need_is_checked(offset: int, size_bytes: int, access: Access, message: str) -> None:
    request = replace(ask("a", size_bytes), access=access)
    regions = (replace(SRAM[0], reachable_by=frozenset({"cpu", "npu"})), SRAM[1])
    found = lay([request], {"a": offset})
    if not message:
        verify(found, [request], regions, Schedule(steps=(), inputs=("a",)))
        return
    with pytest.raises(PlanError, match=re.escape(message)):
        verify(found, [request], regions, Schedule(steps=(), inputs=("a",)))


def test_reading_what_nobody_wrote_is_found() -> None:
    assert fault([A], {"a": 0}, Step(name="s", reads=("a",))) == "at 's': 'a' is read before it is written"
    assert "'x' is written, but no request" in fault([A], {"a": 0}, Step(name="s", writes=("x",)))


def test_views_must_lie_on_their_source_and_find_it_whole() -> None:
    aliases = (Alias(output="b", input="a", kind=AliasKind.VIEW),)
    step = Step(name="reshape", reads=("a",), writes=("b",))
    again = Step(name="again", reads=("a", "b"))
    assert fault([A, B], {"a": 0, "b": 0}, step, again, inputs=("a",), aliases=aliases) == ""
    assert "expected the same place" in fault([A, B], {"a": 0, "b": 10}, step, inputs=("a",), aliases=aliases)
    late = (Step(name="other", writes=("c",)), Step(name="reshape", writes=("b",)))
    assert "byte 6 of 'a'" in fault([A, B, C], {"a": 0, "b": 0, "c": 6}, *late, inputs=("a",), aliases=aliases)


def test_in_place_takes_its_own_input_only() -> None:
    aliases = (Alias(output="b", input="a", kind=AliasKind.IN_PLACE),)
    step = Step(name="add", reads=("a", "c"), writes=("b",))
    assert fault([A, B, C], {"a": 0, "b": 0, "c": 10}, step, inputs=("a", "c"), aliases=aliases) == ""
    later = Step(name="later", reads=("a",))
    assert "'later': byte 0 of 'a'" in fault(
        [A, B, C], {"a": 0, "b": 0, "c": 10}, step, later, inputs=("a", "c"), aliases=aliases
    )
    assert "expected the same place" in fault(
        [A, B, C], {"a": 0, "b": 2, "c": 20}, step, inputs=("a", "c"), aliases=aliases
    )


def test_scratch_may_not_lie_on_an_input_that_an_output_may_replace() -> None:
    scratch = ask("s", 4, kind=BufferKind.SCRATCH)
    aliases = (Alias(output="b", input="a", kind=AliasKind.IN_PLACE),)
    short = ask("b", 4)
    step = Step(name="relu", reads=("a",), writes=("b", "s"))
    found = lay([A, short, scratch], {"a": 0, "b": 0, "s": 6})
    assert "byte 6 of 'a'" in fault([A, short, scratch], found, step, inputs=("a",), aliases=aliases)


FORWARD = "at 'conv': 'b' overwrites byte 0 of 'a' before it has been read: the input starts 4 B above, expected "
BACKWARD = "at 'conv': 'b' overwrites byte 4 of 'a' before it has been read: it starts 4 B above, expected "


@pytest.mark.parametrize(
    ("places", "overlap", "message"),
    [
        ({"a": 4, "b": 0}, Overlap(output="b", input="a", distance_bytes=4), ""),
        ({"a": 4, "b": 0}, Overlap(output="b", input="a", distance_bytes=-3), ""),
        ({"a": 4, "b": 0}, Overlap(output="b", input="a", distance_bytes=5), FORWARD + "5 or more"),
        ({"a": 4, "b": 0}, Overlap(output="b", input="a", distance_bytes=None), FORWARD + "no overlap"),
        ({"a": 4, "b": 0}, Overlap(output="b", input="a", distance_bytes=4, step_bytes=4), ""),
        (
            {"a": 4, "b": 0},
            Overlap(output="b", input="a", distance_bytes=4, step_bytes=3),
            "at 'conv': 'b' overwrites byte 0 of 'a' before it has been read: they are 4 B apart, expected a multiple "
            "of 3",
        ),
        ({"a": 0, "b": 4}, Overlap(output="b", input="a", distance_bytes=-4), ""),
        ({"a": 0, "b": 4}, Overlap(output="b", input="a", distance_bytes=0, backward_bytes=4), ""),
        (
            {"a": 0, "b": 4},
            Overlap(output="b", input="a", distance_bytes=-4, backward_bytes=5),
            BACKWARD + "5 or more",
        ),
    ],
)
def test_an_overlap_keeps_its_distance(places: dict[str, int], overlap: Overlap, message: str) -> None:
    step = Step(name="conv", reads=("a",), writes=("b",))
    assert fault([A, B], places, step, inputs=("a",), overlaps=(overlap,)) == message


def test_an_overlap_does_not_save_an_input_for_later() -> None:
    overlaps = (Overlap(output="b", input="a", distance_bytes=0),)
    steps = (Step(name="conv", reads=("a",), writes=("b",)), Step(name="add", reads=("a",)))
    assert "'add': byte 0 of 'a'" in fault([A, B], {"a": 4, "b": 0}, *steps, inputs=("a",), overlaps=overlaps)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (lay([A], {"a": 0}), "'b' is not placed"),
        (lay([A, B, C], {"a": 0, "b": 10, "c": 20}), "'c' is placed, but no request"),
        (lay([A, B], {"a": 0, "b": 11}), "expected multiples of 1 and 2"),
        (lay([A, B], {"a": 0, "b": 192}), "not inside its 200 B"),
        (lay([A, B], {"a": 0, "b": -2}), "not inside its 200 B"),
        (lay([A, B], {"a": 0, "b": 10}, peak_bytes=30), "has peak 20 B"),
        (lay([A, B], {"a": 0, "b": 10}, activation_peak_bytes=21), "activations up to 20 B"),
        (lay([A, B], {"a": 0, "b": 10}, bound_bytes=21), "below its proved bound"),
        (lay([A, B], {"a": 0, "b": 10}, activation_bound_bytes=2), "below its proved bound"),
    ],
)
def test_what_a_plan_states_is_checked(found: MemoryPlan, message: str) -> None:
    assert message in fault([A, B], found)


def test_alignment_and_region_of_the_request_are_checked() -> None:
    assert "multiples of 8 and 2" in fault([ask("a", 1, alignment=8)], lay([A], {"a": 4}))
    assert "promises alignment 4, 'a' more" in fault([ask("a", 10, alignment=8)], lay([A], {"a": 8}))
    elsewhere = MemoryPlan(placements={"a": Placement(region="npu", offset=0)}, regions=())
    assert "expected one of ['sram']" in fault([A], elsewhere)


@given(st.data())
@settings(max_examples=60)
def test_buffers_moved_onto_each_other_are_found(data: st.DataObject) -> None:
    requests = [
        Request(
            name=f"b{n}",
            size_bytes=data.draw(st.integers(1, 30)),
            lifetime=Lifetime(first=n // 2, last=n // 2 + data.draw(st.integers(0, 3))),
            regions=("sram",),
        )
        for n in range(data.draw(st.integers(2, 8)))
    ]
    regions = (Region(name="sram", size_bytes=1000),)
    found = plan(requests, regions)
    schedule = schedule_of_lifetimes(requests)
    verify(found, requests, regions, schedule)
    one, two = data.draw(st.permutations(requests))[:2]
    assume(one.lifetime.meets(two.lifetime))
    target = found.placements[two.name].offset + data.draw(st.integers(0, two.size_bytes - 1))
    moved = {**found.placements, one.name: Placement(region="sram", offset=target)}
    peak = max(moved[request.name].offset + request.size_bytes for request in requests)
    region = replace(
        found.region("sram"), peak_bytes=peak, bound_bytes=0, activation_peak_bytes=0, activation_bound_bytes=0
    )
    with pytest.raises(PlanError, match="has been overwritten by"):
        verify(MemoryPlan(placements=moved, regions=(region,)), requests, regions, schedule)


def test_the_schedule_of_a_graph_has_inputs_outputs_and_scratch() -> None:
    graph = chain([4, 4, 4])
    assert schedule_of_graph(graph, None, {"l1": ["l1:scratch"]}) == Schedule(
        steps=(
            Step(name="l0", reads=("t0",), writes=("t1",)),
            Step(name="l1", reads=("t1",), writes=("t2", "l1:scratch")),
        ),
        inputs=("t0",),
        outputs=("t2",),
    )
    twice = build([("x", 1)], [(["x", "x"], [("y", 1)])], ["y"])
    assert schedule_of_graph(twice).steps[0].reads == ("x",)


def test_plans_of_graphs_are_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that puts all tensors at one offset is caught before its plan is used."""
    graph = chain([8, 8, 8])
    plan_graph(graph, SRAM)

    def crowded(requests: Sequence[Request], regions: Sequence[Region], **_: object) -> MemoryPlan:
        return lay(list(requests), dict.fromkeys((request.name for request in requests), 0))

    monkeypatch.setattr("ferrule.memory.graph_plan.plan", crowded)
    with pytest.raises(PlanError, match="'t0'"):
        plan_graph(graph, SRAM)


def test_outputs_that_are_constants_are_replayed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph("constant")
    for name in ("x", "y"):
        graph.add_input(TensorInfo(name, (8,), DataType.UINT8))
    graph.add_constant(TensorInfo("k", (8,), DataType.UINT8), np.zeros(8, np.uint8))
    graph.set_outputs(["x", "k"])
    plan_graph(graph, SRAM, Requirements(constant_outputs=True))

    def clashing(requests: Sequence[Request], regions: Sequence[Region], **_: object) -> MemoryPlan:
        return lay(list(requests), {"x": 0, "y": 16, "k": 0})

    monkeypatch.setattr("ferrule.memory.graph_plan.plan", clashing)
    with pytest.raises(PlanError, match="'x'"):
        plan_graph(graph, SRAM, Requirements(constant_outputs=True))


def replayed_byte_by_byte(requests: list[Request], offsets: dict[str, int], steps: list[Step]) -> bool:
    """Return whether a run without aliases loses no byte, simulated with a list of bytes."""
    sizes = {request.name: request.size_bytes for request in requests}
    memory = [""] * 200
    written: set[str] = set()

    def whole(name: str) -> bool:
        return name in written and set(memory[offsets[name] : offsets[name] + sizes[name]]) == {name}

    for step in steps:
        if not all(whole(name) for name in step.reads):
            return False
        for name in step.writes:
            memory[offsets[name] : offsets[name] + sizes[name]] = [name] * sizes[name]
            written.add(name)
        if not all(whole(name) for name in (*step.reads, *step.writes)):
            return False
    return True


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_the_replay_on_intervals_equals_one_byte_by_byte(data: st.DataObject) -> None:
    names = ["a", "b", "c", "d", "e"]
    requests = [ask(name, data.draw(st.integers(1, 12))) for name in names]
    offsets = {name: 2 * data.draw(st.integers(0, 12)) for name in names}
    some = st.lists(st.sampled_from(names), max_size=3, unique=True)
    steps = [
        Step(name=f"s{n}", reads=tuple(data.draw(some)), writes=tuple(data.draw(some)))
        for n in range(data.draw(st.integers(1, 6)))
    ]
    assert (fault(requests, offsets, *steps) == "") == replayed_byte_by_byte(requests, offsets, steps)


def test_the_size_of_an_arena_does_not_matter_to_the_replay() -> None:
    size = 16 << 30
    regions = (Region(name="sram", size_bytes=4 * size),)
    requests = [
        Request(name=name, size_bytes=size, lifetime=Lifetime(first=n, last=n + 1), regions=("sram",))
        for n, name in enumerate(("a", "b", "c"))
    ]
    found = plan(requests, regions)
    assert found.peak_bytes == 2 * size
    steps = (Step(name="one", reads=("a",), writes=("b",)), Step(name="two", reads=("b",), writes=("c",)))
    verify(found, requests, regions, Schedule(steps=steps, inputs=("a",), outputs=("c",)))
    with pytest.raises(PlanError, match=r"byte 0 of 'a' .* has been overwritten by 'c'"):
        verify(found, requests, regions, Schedule(steps=steps, inputs=("a",), outputs=("a", "c")))


def test_a_layer_that_goes_on_keeps_its_tensors() -> None:
    """Until its end, nothing overwrites its input, and its output may be written at any time."""

    def found(end: int, c: int, reads: tuple[str, ...] = ()) -> str:
        steps = (
            Step(name="npu", reads=("a",), writes=("b",), end=end),
            Step(name="core", reads=reads, writes=("c",)),
            Step(name="last", reads=("b", "c")),
        )
        return fault([A, B, C], {"a": 0, "b": 10, "c": c}, *steps, inputs=("a",))

    assert found(0, 0) == found(1, 20) == ""
    assert found(1, 4).startswith("at 'core', beside which 'npu' goes on: byte 4 of 'a'")
    assert found(1, 14).startswith("at 'core', beside which 'npu' goes on: byte 4 of 'b'")
    assert found(1, 20, reads=("a",)) == ""
    assert found(1, 20, reads=("b",)) == "at 'core': 'b' is read before 'npu' ends"


def test_only_later_layers_of_its_queue_and_views_read_what_a_layer_that_goes_on_writes() -> None:
    def found(reader: Step, *others: Step, aliases: tuple[Alias, ...] = ()) -> str:
        steps = (Step(name="npu", reads=("a",), writes=("b",), end=3, queue="npu0"), reader, *others)
        placed = {"a": 0, "b": 10, "c": 10 if aliases else 20}
        return fault([A, B, C], placed, *steps, inputs=("a",), aliases=aliases)

    view = (Alias(output="c", input="b", kind=AliasKind.VIEW),)
    reader = Step(name="reader", reads=("b",), writes=("c",), end=3, queue="npu0")
    ended = (Step(name="x"), Step(name="y"), Step(name="z", reads=("c",)))
    assert found(reader, *ended) == ""
    assert "is read before" in found(replace(reader, queue="npu1"), *ended)
    assert "is read before" in found(replace(reader, queue="", end=0), *ended)
    assert found(Step(name="view", reads=("b",), writes=("c",)), *ended, aliases=view) == ""
    of_view = Step(name="reader", reads=("c",))
    assert "'c' is read before" in found(Step(name="view", reads=("b",), writes=("c",)), of_view, aliases=view)


@pytest.mark.parametrize("seed", range(8))
def test_plans_of_layers_that_go_on_are_replayed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each plan passes its replay; a planner that forgets the ends is found."""
    dice = np.random.default_rng(seed)
    graph = random_network(seed, layers=8, dtype=DataType.INT8)
    order = [layer.name for layer in graph.layers]
    ends = {}
    for step, layer in enumerate(graph.layers):
        readers = [order.index(reader.name) for name in layer.outputs for reader in graph.consumers(name)]
        last = min(readers, default=len(order)) - 1
        if last > step and layer.type not in having(view=True) and dice.random() < 0.7:
            ends[layer.name] = int(dice.integers(step + 1, last + 1))
    scratch = {name: [ScratchNeed(size_bytes=40)] for name in order[::2]}
    needs = Requirements(scratch=scratch, order=order, ends=ends)

    def planned() -> None:
        plan_graph(graph, [Region(name="sram", size_bytes=1 << 22)], needs)

    planned()
    monkeypatch.setattr("ferrule.memory.graph_plan.lifetimes", lambda graph, order, ends: lifetimes(graph, order))
    with pytest.raises(PlanError, match="goes on"):
        planned()
