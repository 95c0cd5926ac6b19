# SPDX-License-Identifier: Apache-2.0
"""Programs that find their tensors inside their scratch: the C runs natively, and each run is compared with numpy."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from placing_compiler import (
    PLACING,
    PlacingTarget,
    Program,
    Programs,
    add_program,
    add_view,
    emit,
    evaluate,
    random_graph,
    some_inputs,
    tensor,
)

from ferrule.backends import BrokenBackendError
from ferrule.backends.firmware import FirmwareTarget, LoweredOp, LoweringContext, Overlap, PlacedTensor, Scratch
from ferrule.backends.guarded import guard
from ferrule.codegen import CORE, Artifact, shared_region
from ferrule.dom import Call, Identifier, Null
from ferrule.errors import UnsupportedError
from ferrule.graph import DataType, Graph
from ferrule.memory import ArenaOverflowError, Region


def program(scratch_bytes: int, *placed: tuple[str, int], preserved: tuple[str, ...] = ()) -> Program:
    return Program(
        scratch_bytes=scratch_bytes,
        key=scratch_bytes,
        placed=tuple(PlacedTensor(tensor=name, offset=offset, preserved=name in preserved) for name, offset in placed),
    )


def check(graphs: list[Graph], folder: Path, cc: tuple[str, ...]) -> None:
    artifacts = [emit(graph) for graph in graphs]
    programs = Programs(artifacts, folder, cc)
    for seed, artifact in enumerate(artifacts):
        graph = artifact.graph
        given = some_inputs(graph, seed)
        wanted = evaluate(graph, given)
        assert programs.run(artifact, given, apart=True) == wanted
        if not {info.name for info in graph.inputs} & {info.name for info in graph.outputs}:
            assert programs.run(artifact, given, apart=False) == wanted


@pytest.mark.cc
def test_random_programs_compute_what_numpy_computes(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    check([random_graph(seed) for seed in range(8)], tmp_path, host_cc)


@pytest.mark.cc
@pytest.mark.nightly
@pytest.mark.parametrize("first", range(8, 408, 50))
def test_more_random_programs(first: int, tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    check([random_graph(seed) for seed in range(first, first + 50)], tmp_path, host_cc)


def one(*, preserved: tuple[str, ...] = (), elsewhere: int = 32) -> Graph:
    """Return `x`, elementwise -> `a`, program -> `y` at the place of `a`, and a program that has `y` elsewhere."""
    graph = Graph("one")
    x = graph.add_input(tensor("x", 12))
    add_program(graph, "first", [x], [tensor("a", 12)], "elementwise")
    add_program(graph, "second", ["a"], [tensor("y", 8)], program(64, ("a", 16), ("y", 16), preserved=preserved))
    add_program(graph, "third", ["y"], [tensor("z", 8)], program(64, ("y", elsewhere), ("z", 0)))
    graph.set_outputs(["z"])
    return graph


def reasons(artifact: Artifact) -> dict[str, str]:
    return {each.tie.buffer: each.reason for each in artifact.storage.untied}


def test_a_tensor_may_lie_in_the_scratch_of_two_programs_at_different_places() -> None:
    artifact = emit(one())
    storage = artifact.storage
    assert not storage.untied
    assert [tie.buffer for tie in storage.ties] == ["a", "y", "y", "z"]
    place = storage.offset("second:scratch")
    assert storage.offset("a") == storage.offset("y") == place + 16
    assert storage.offset("third:scratch") == place + 16 - 32
    assert artifact.workspace_bytes == 80  # bytes 0 to 64 of the third program, 16 to 80 of the second one
    assert storage.plan.regions[0].certificate == "optimal"
    text = artifact.files["ferrule_one.c"]
    assert text.count("memmove") == 1  # the output, unless the caller's memory for it is its place
    assert "if (outputs->z != z) {" in text


def apart(*, preserved: tuple[str, ...]) -> Graph:
    """Return a graph like `one`, but with `y` beside `a`."""
    graph = Graph("apart")
    x = graph.add_input(tensor("x", 12))
    add_program(graph, "first", [x], [tensor("a", 12)], "elementwise")
    add_program(graph, "second", ["a"], [tensor("y", 8)], program(64, ("a", 16), ("y", 32), preserved=preserved))
    add_program(graph, "third", ["y"], [tensor("z", 8)], program(64, ("y", 0), ("z", 8)))
    return graph


def later(graph: Graph) -> Graph:
    add_program(graph, "fourth", ["a"], [tensor("w", 12)], "elementwise")
    graph.set_outputs(["z", "w"])
    return graph


def between(a: int, b: int, dtype: DataType = DataType.INT8, alignment: int = 16) -> Graph:
    """Return a program with outputs `a` at byte 0 and `b` at byte 48, and one with these at bytes `a` and `b`."""
    first = replace(program(64, ("a", 0), ("b", 48)), alignment=alignment)
    second = replace(program(96, ("a", a), ("b", b)), alignment=alignment)
    graph = Graph("between")
    x = graph.add_input(tensor("x", 4))
    made = [tensor("a", 3, dtype), tensor("b", 3, dtype)]
    add_program(graph, "first", [x], made, first)
    add_program(graph, "second", ["a", "b"], [tensor("y", 8)], second)
    graph.set_outputs(["y"])
    return graph


def view_of_input() -> Graph:
    graph = Graph("view")
    view = add_view(graph, graph.add_input(tensor("x", 8)), "v")
    add_program(graph, "only", [view], [tensor("y", 8)], program(32, ("v", 0), ("y", 8)))
    graph.set_outputs([add_view(graph, "y", "seen")])
    return graph


def output_is_input() -> Graph:
    graph = Graph("same")
    add_program(graph, "only", [graph.add_input(tensor("x", 8))], [tensor("y", 8)], program(32, ("x", 0), ("y", 16)))
    graph.set_outputs(["x", "y"])
    return graph


def twice() -> Graph:
    graph = Graph("twice")
    view = add_view(graph, graph.add_input(tensor("x", 8)), "v")
    add_program(graph, "only", ["x", view], [tensor("y", 8)], program(32, ("x", 0), ("y", 16)))
    graph.set_outputs(["y"])
    return graph


CASES: dict[str, tuple[Callable[[], Graph], dict[str, str]]] = {
    "read later": (lambda: later(one()), {"a": "layer 'fourth' reads it later, and this layer may overwrite it"}),
    "read later, and preserved": (lambda: later(apart(preserved=("a",))), {}),
    "at the same distance": (lambda: between(16, 64), {}),
    "at two distances": (
        lambda: between(16, 48),
        {
            "a": "'second:scratch' and 'b' would then share bytes while both are in use",
            "b": "'second:scratch' and 'a' would then share bytes while both are in use",
        },
    ),
    "aligned for its elements only": (lambda: between(4, 52, DataType.INT32, alignment=4), {}),
    "aligned in two ways": (
        lambda: between(4, 52, DataType.INT32),
        dict.fromkeys("ab", "the alignment of the tensor does not allow that place"),
    ),
    "a view of an input, and a view as output": (view_of_input, {}),
    "an input that is an output": (
        output_is_input,
        {"x": "it is needed after the run, and this layer may overwrite it"},
    ),
    "read twice": (twice, {"x": "the layer also reads its bytes as 'v'"}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_lie_inside_is_copied_for_a_reason(name: str) -> None:
    make, wanted = CASES[name]
    artifact = emit(make())
    assert reasons(artifact) == wanted
    texts = [copy.text for record in artifact.operators for copy in record.copies]
    assert len(texts) == len(wanted)
    assert all(reason in text for reason, text in zip(wanted.values(), texts, strict=True))


@pytest.mark.cc
def test_the_cases_compute_what_numpy_computes(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    graphs = []
    for number, (make, _) in enumerate(CASES.values()):
        graph = make()
        graph.name = f"case {number}"
        graphs.append(graph)
    check(graphs, tmp_path, host_cc)


# ---- scratch in a memory by name


DTCM = shared_region("dtcm", 4096, 0, frozenset({CORE, PLACING}))
FAST = Scratch(name="fast", size_bytes=40, memory="dtcm", alignment=16)


def fast(*more: tuple[Scratch, ...]) -> Graph:
    """Return a chain of programs with these scratches."""
    graph = Graph("fast")
    name = graph.add_input(tensor("x", 4))
    for number, each in enumerate(more):
        made = f"t{number}"
        wanted = replace(program(32, (name, 0), (made, 8)), more=each)
        (name,) = add_program(graph, f"program_{number}", [name], [tensor(made, 4)], wanted)
    graph.set_outputs([name])
    return graph


@pytest.mark.cc
def test_scratch_lies_in_the_memory_that_it_names(tmp_path: Path, host_cc: tuple[str, ...]) -> None:
    second = replace(FAST, size_bytes=24)
    graph = fast((FAST,), (), (second, replace(second, name="more"), replace(second, name="usual", memory="")))
    artifact = emit(graph, named=[DTCM])
    storage = artifact.storage
    assert [region.name for region in storage.arenas] == ["sram", "shared_dtcm"]
    assert storage.plan.region("shared_dtcm").peak_bytes == 56  # 24 B at 0 and at 32
    assert storage.scratches("program_2") == tuple(
        f"program_2:scratch{part}" for part in ("", ":fast", ":more", ":usual")
    )
    assert storage.region("program_2:scratch:usual").name == "sram"
    assert [record.scratch_bytes for record in artifact.operators] == [72, 32, 104]
    programs = Programs([artifact], tmp_path, host_cc)
    given = some_inputs(graph, 1)
    assert programs.run(artifact, given, apart=True) == evaluate(graph, given)
    place = storage.offset("program_2:scratch:more")
    assert bytes(programs.memory["shared_dtcm"])[place : place + 24] == b"\x3c" * 24


def test_a_memory_without_scratch_is_no_part_of_the_plan() -> None:
    assert emit(fast(()), named=[DTCM]).files == emit(fast(())).files
    assert [region.name for region in emit(fast(()), named=[DTCM]).storage.regions] == ["sram"]


def test_the_memory_of_the_workspace_can_be_named() -> None:
    artifact = emit(fast((FAST,)), workspace="dtcm")
    assert artifact.storage.region("program_0:scratch:fast").name == "sram"


def test_tensors_have_other_variables_than_memories() -> None:
    graph = Graph("names")
    names = [graph.add_input(tensor(name, 4)) for name in ("shared_dtcm", "sram")]
    add_program(graph, "program", names, [tensor("y", 4)], program(32, ("shared_dtcm", 0), ("sram", 8), ("y", 16)))
    graph.set_outputs(["y"])
    for places, variables in (
        ({"named": [DTCM]}, ("shared_dtcm_2", "sram_")),
        ({"others": [DTCM], "named": [DTCM]}, ("shared_dtcm_2", "sram_")),
        ({"workspace": "dtcm"}, ("shared_dtcm", "sram_")),
    ):
        lowered = emit(graph, **places).storage.lowered
        assert tuple(lowered.variables[name] for name in names) == variables


def test_a_memory_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ArenaOverflowError, match="region 'shared_dtcm' holds 32 B"):
        emit(fast((FAST,)), named=[replace(DTCM, size_bytes=32)])


@pytest.mark.parametrize("region", [DTCM, replace(DTCM, name="shared_other", reachable_by=frozenset({"dma"}))])
def test_a_memory_that_is_not_there_is_an_error(region: Region) -> None:
    wanted = replace(FAST, memory="other")
    known = "dtcm" if region is DTCM else "none"
    message = f"'fast' is wanted in memory 'other', expected a memory that the core and Placing reach: {known}"
    with pytest.raises(UnsupportedError, match=message):
        emit(fast((wanted,)), named=[region])


# ---- answers of a backend


class Answer:
    """Lowers every layer to a given operator."""

    def __init__(self, **changes: object) -> None:
        self._changes = changes

    def lower(self, context: LoweringContext) -> LoweredOp:
        op = PlacingTarget().lower(context)
        return replace(op, **self._changes) if context.layer.name == "second" else op  # type: ignore[arg-type]


A, Y = PlacedTensor(tensor="a", offset=16), PlacedTensor(tensor="y", offset=16)
WRONG: dict[str, tuple[dict[str, object], str]] = {
    "unknown": ({"placed": (replace(A, tensor="x"),)}, "placed[0] ('x') is no tensor of the layer that is computed"),
    "outside": ({"placed": (replace(A, offset=60),)}, "is at bytes 60 to 72, expected a place in the 64 B of scratch"),
    "before": ({"placed": (replace(A, offset=-4),)}, "is at bytes -4 to 8"),
    "twice": ({"placed": (A, replace(A, offset=0))}, "placed has two places for 'a'"),
    "output kept": ({"placed": (replace(Y, preserved=True),)}, "is an output that is preserved"),
    "kept, overwritten": ({"placed": (replace(A, preserved=True), Y)}, "at byte 16, which overlap"),
    "named by overlaps": ({"overlaps": (Overlap(output="y", input="a", distance_bytes=0),)}, "also named by overlaps"),
    "fed": (
        {"feed": Call(Identifier("f"), ()), "status": Null()},
        "placed is set beside view_of or feed",
    ),
    "types": ({"placed": ("a",)}, "placed[0]"),
    "scratch without a name": ({"scratches": (replace(FAST, name=""),)}, "scratches[0].name is ''"),
    "scratch without bytes": ({"scratches": (replace(FAST, size_bytes=0),)}, "scratches[0].size_bytes is 0"),
    "scratch aligned to 3": ({"scratches": (replace(FAST, alignment=3),)}, "scratches[0].alignment is 3"),
    "scratch twice": ({"scratches": (FAST, replace(FAST, name="FAST"))}, "2 entries with the name 'fast'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_of_a_backend_is_reported(name: str) -> None:
    changes, message = WRONG[name]
    graph = one()
    with pytest.raises(BrokenBackendError, match=re.escape(message)):
        emit(graph, target=guard(Answer(**changes), FirmwareTarget, "Placing"))


def test_a_misaligned_place_is_reported() -> None:
    graph = between(16, 64, DataType.INT32)
    placed = (PlacedTensor(tensor="a", offset=18),)
    with pytest.raises(BrokenBackendError, match="expected a multiple of the 4 B of an element"):
        emit(graph, target=guard(Answer(placed=placed), FirmwareTarget, "Placing"))
