# SPDX-License-Identifier: Apache-2.0
"""Buffers at fixed places inside scratch: random problems against brute force, and the ties that a plan refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placing_compiler import emit, random_graph

from ferrule.memory import (
    BufferKind,
    Effort,
    Lifetime,
    MemoryPlan,
    Placement,
    PlanError,
    Region,
    RegionPlan,
    Request,
    Schedule,
    Step,
    Tie,
    plan,
    schedule_of_graph,
    scratch_name,
    verify,
)
from ferrule.memory.ties import TieError, kept_ties

REGIONS = (Region(name="sram", size_bytes=1 << 20),)
QUICK = Effort(placements=2_000, nodes=20_000)


def request(name: str, size_bytes: int, first: int, last: int, alignment: int = 1) -> Request:
    return Request(
        name=name,
        size_bytes=size_bytes,
        lifetime=Lifetime(first=first, last=last),
        regions=("sram",),
        alignment=alignment,
        kind=BufferKind.SCRATCH if name.startswith("s") else BufferKind.ACTIVATION,
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Request], list[Tie], Schedule]:
    """Return a chain of programs with buffers beside it, the ties, and the run."""
    programs = draw(st.integers(1, 2))
    sizes = [draw(st.integers(1, 6)) for _ in range(programs + 1)]
    requests = [request(f"t{n}", size, max(n - 1, 0), min(n, programs - 1)) for n, size in enumerate(sizes)]
    ties = []
    for number in range(programs):
        scratch = draw(st.integers(max(sizes[number : number + 2]), 12))
        requests.append(request(f"s{number}", scratch, number, number))
        ties += [
            Tie(buffer=f"t{each}", scratch=f"s{number}", offset=draw(st.integers(0, scratch - sizes[each])))
            for each in (number, number + 1)
        ]
    for number in range(draw(st.integers(0, 2))):
        first = draw(st.integers(0, programs - 1))
        requests.append(request(f"x{number}", draw(st.integers(1, 6)), first, draw(st.integers(first, programs - 1))))
    requests = [replace(each, alignment=draw(st.sampled_from((1, 1, 2, 4)))) for each in requests]
    beside = [each for each in requests if each.name.startswith("x")]
    steps = tuple(
        Step(
            name=f"program {n}",
            reads=(f"t{n}", *(each.name for each in beside if each.lifetime.first < n <= each.lifetime.last)),
            writes=(f"t{n + 1}", f"s{n}", *(each.name for each in beside if each.lifetime.first == n)),
        )
        for n in range(programs)
    )
    return requests, ties, Schedule(steps=steps, inputs=("t0",), outputs=(f"t{programs}",))


@settings(max_examples=120, deadline=None)
@given(problems())
def test_plans_are_replayed_and_no_layout_is_smaller_than_the_bound(
    problem: tuple[list[Request], list[Tie], Schedule],
) -> None:
    requests, wanted, run = problem
    ties, untied = kept_ties(wanted, requests, REGIONS, (), {})
    assert len(ties) + len(untied) == len(wanted)
    found = plan(requests, REGIONS, ties=ties, effort=QUICK)
    verify(found, requests, REGIONS, run, ties=ties)
    (region,) = found.regions
    least = _least(requests, ties, region.peak_bytes)
    assert region.bound_bytes <= least <= region.peak_bytes


def _least(requests: list[Request], ties: tuple[Tie, ...], most: int) -> int:
    """Return the least peak of any layout that the rules allow, by trying all, up to `most`."""
    tied: dict[str, list[tuple[str, int]]] = {each.name: [(each.name, 0)] for each in requests}
    for tie in ties:
        body = tied[tie.scratch]
        shift = dict(body)[tie.scratch] + tie.offset - dict(tied[tie.buffer])[tie.buffer]
        if tied[tie.buffer] is not body:
            body += [(name, place + shift) for name, place in tied[tie.buffer]]
            for name, _ in body:
                tied[name] = body
    bodies = list({id(body): body for body in tied.values()}.values())
    together = {frozenset({tie.buffer, tie.scratch}) for tie in ties}
    together |= {frozenset({a.buffer, b.buffer}) for a in ties for b in ties if a.scratch == b.scratch}
    by_name = {each.name: each for each in requests}
    best = most
    choices = []
    for body in bodies:
        low = min(place for _, place in body)
        choices.append(
            [
                {name: start + place - low for name, place in body}
                for start in range(most)
                if all((start + place - low) % by_name[name].alignment == 0 for name, place in body)
            ]
        )

    def extend(number: int, places: dict[str, int], peak: int) -> None:
        nonlocal best
        if peak >= best:
            return
        if number == len(choices):
            best = peak
            return
        for choice in choices[number]:
            ends = max(place + by_name[name].size_bytes for name, place in choice.items())
            if max(ends, peak) < best and all(
                _apart(by_name[one], a, by_name[two], b) or frozenset({one, two}) in together
                for one, a in choice.items()
                for two, b in places.items()
            ):
                extend(number + 1, places | choice, max(ends, peak))

    extend(0, {}, 0)
    return best


def _apart(one: Request, a: int, two: Request, b: int) -> bool:
    return not one.lifetime.meets(two.lifetime) or a + one.size_bytes <= b or b + two.size_bytes <= a


def test_scratch_is_only_there_while_its_layer_runs() -> None:
    requests = [
        request("x", 100, 0, 2, 16),
        request("s", 500, 2, 2, 16),
        request("y", 60, 2, 4, 16),
        request("before", 300, 0, 1),
        request("after", 400, 3, 4),
    ]
    ties = [Tie(buffer="x", scratch="s", offset=64), Tie(buffer="y", scratch="s", offset=64)]
    found = plan(requests, REGIONS, ties=ties)
    places = found.placements
    assert places["x"].offset == places["y"].offset == places["s"].offset + 64
    (region,) = found.regions
    assert (region.peak_bytes, region.certificate) == (524, "optimal")  # 64 + 60 + 400, since `after` lies above `y`


def test_a_storage_may_lie_between_two_parts_of_another_one() -> None:
    requests = [request("a", 10, 0, 1), request("b", 10, 0, 1), request("s", 100, 1, 1), request("gap", 70, 0, 0)]
    ties = [Tie(buffer="a", scratch="s", offset=0), Tie(buffer="b", scratch="s", offset=90)]
    found = plan(requests, REGIONS, ties=ties)
    assert found.region("sram").peak_bytes == 100
    assert 10 <= found.placements["gap"].offset <= 20


def test_contradictory_ties_are_refused() -> None:
    requests = [request("x", 4, 0, 1), request("s0", 8, 0, 0), request("s1", 8, 1, 1), request("y", 4, 0, 1)]
    ties = [
        Tie(buffer="x", scratch="s0", offset=0),
        Tie(buffer="y", scratch="s0", offset=4),
        Tie(buffer="x", scratch="s1", offset=4),
        Tie(buffer="y", scratch="s1", offset=0),
    ]
    with pytest.raises(TieError, match="another layer needs it elsewhere, at byte 8 of this scratch"):
        plan(requests, REGIONS, ties=ties)
    kept, untied = kept_ties(ties, requests, REGIONS, (), {})
    assert kept == tuple(ties[:3])
    assert [each.tie for each in untied] == [ties[3]]
    _, untied = kept_ties(ties, requests, REGIONS, (), {}, first={"s1"})
    assert [each.tie.scratch for each in untied] == ["s0"]


def test_all_tensors_between_two_programs_are_tied_together() -> None:
    requests = [request("x", 4, 0, 1), request("y", 4, 0, 1), request("s0", 8, 0, 0), request("s1", 20, 1, 1)]
    ties = [
        Tie(buffer=name, scratch=scratch, offset=offset)
        for name, scratch, offset in (("x", "s0", 0), ("y", "s0", 4), ("x", "s1", 8), ("y", "s1", 12))
    ]
    kept, untied = kept_ties(ties, requests, REGIONS, (), {})
    assert (kept, untied) == (tuple(ties), ())
    assert plan(requests, REGIONS, ties=kept).region("sram").peak_bytes == 20


def test_a_tie_against_the_alignment_is_refused() -> None:
    requests = [request("x", 4, 0, 0, 16), request("s", 32, 0, 0, 16)]
    _, untied = kept_ties([Tie(buffer="x", scratch="s", offset=8)], requests, REGIONS, (), {})
    assert [each.reason for each in untied] == ["the alignment of the tensor does not allow that place"]
    coarse = (Region(name="sram", size_bytes=1 << 20, alignment=16),)
    plain = [replace(each, alignment=1) for each in requests]
    assert kept_ties([Tie(buffer="x", scratch="s", offset=8)], plain, coarse, (), {})[0] == ()
    assert kept_ties([Tie(buffer="x", scratch="s", offset=8)], plain, REGIONS, (), {})[1] == ()


def test_a_tie_to_another_memory_is_refused() -> None:
    regions = (*REGIONS, Region(name="other", size_bytes=1 << 20))
    requests = [replace(request("x", 4, 0, 0), regions=("other",)), request("s", 32, 0, 0)]
    _, untied = kept_ties([Tie(buffer="x", scratch="s", offset=8)], requests, regions, (), {})
    assert [each.reason for each in untied] == ["no memory is allowed for all of x, s"]


# ---- the replay


def _plan(offsets: dict[str, int], requests: list[Request]) -> MemoryPlan:
    peak = max(offset + each.size_bytes for each, offset in zip(requests, offsets.values(), strict=True))
    part = RegionPlan(
        region="sram",
        size_bytes=1 << 20,
        peak_bytes=peak,
        bound_bytes=0,
        activation_peak_bytes=0,
        activation_bound_bytes=0,
        alignment=16,
    )
    return MemoryPlan(
        placements={name: Placement(region="sram", offset=offset) for name, offset in offsets.items()}, regions=(part,)
    )


X, S, Y, Z = request("x", 4, 0, 0), request("s", 16, 0, 0), request("y", 4, 0, 1), request("z", 4, 0, 1)
RUN = Schedule(
    steps=(Step(name="program", reads=("x",), writes=("y", "s")), Step(name="reader", reads=("y", "z"))),
    inputs=("x", "z"),
)
TIES = (Tie(buffer="x", scratch="s", offset=0), Tie(buffer="y", scratch="s", offset=2))


def test_the_replay_accepts_what_a_program_may_do() -> None:
    requests = [X, S, Y, Z]
    verify(_plan({"x": 0, "s": 0, "y": 2, "z": 16}, requests), requests, REGIONS, RUN, ties=TIES)


@pytest.mark.parametrize(
    ("offsets", "run", "ties", "message"),
    [
        ({"x": 1, "s": 0, "y": 2, "z": 16}, RUN, TIES, "'x' is at 1 of 'sram', expected byte 0 of 's'"),
        ({"x": 0, "s": 0, "y": 3, "z": 16}, RUN, TIES, "'y' is at 3 of 'sram', expected byte 2 of 's'"),
        ({"x": 0, "s": 0, "y": 2, "z": 12}, RUN, TIES, "byte 0 of 'z' .* overwritten by 's'"),
        (
            {"x": 0, "s": 0, "y": 2, "z": 16},
            replace(RUN, steps=(RUN.steps[0], replace(RUN.steps[1], reads=("x", "y")))),
            TIES,
            "at 'reader': byte 0 of 'x' .* overwritten by 's'",
        ),
        (
            {"x": 0, "s": 0, "y": 2, "z": 16},
            RUN,
            (replace(TIES[0], preserved=True), TIES[1]),
            "byte 2 of 'x' .* overwritten by 'y'",
        ),
        ({"x": 0, "s": 0, "y": 2, "z": 16}, RUN, (), "byte 0 of 'x' .* overwritten by 's'"),
    ],
)
def test_the_replay_rejects_a_wrong_plan(
    offsets: dict[str, int], run: Schedule, ties: tuple[Tie, ...], message: str
) -> None:
    requests = [X, S, Y, Z]
    with pytest.raises(PlanError, match=message):
        verify(_plan(offsets, requests), requests, REGIONS, run, ties=ties)


def test_a_preserved_input_is_still_there() -> None:
    requests = [X, S, Y, Z]
    ties = (replace(TIES[0], preserved=True), replace(TIES[1], offset=4))
    run = replace(RUN, steps=(RUN.steps[0], replace(RUN.steps[1], reads=("x", "y"))))
    verify(_plan({"x": 0, "s": 0, "y": 4, "z": 16}, requests), requests, REGIONS, run, ties=ties)


@pytest.mark.parametrize("seed", range(8))
def test_moving_a_tied_tensor_in_the_plan_of_a_graph_is_noticed(seed: int) -> None:
    graph = random_graph(seed)
    artifact = emit(graph)
    storage = artifact.storage
    order = [record.layer for record in artifact.operators]
    scratch = {name: [scratch_name(name)] for name in order if scratch_name(name) in storage.plan.placements}
    run = schedule_of_graph(graph, order, scratch)
    arguments = (storage.requests, storage.regions, run)
    parts = {"aliases": storage.aliases, "overlaps": storage.overlaps, "ties": storage.ties}
    verify(storage.plan, *arguments, **parts)  # type: ignore[arg-type]
    for tie in storage.ties:
        place = storage.plan.placements[tie.buffer]
        moved = storage.plan.placements | {tie.buffer: replace(place, offset=place.offset + 16)}
        with pytest.raises(PlanError):
            verify(replace(storage.plan, placements=moved), *arguments, **parts)  # type: ignore[arg-type]
