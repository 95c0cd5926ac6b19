# SPDX-License-Identifier: Apache-2.0
"""The division of a device's subgraphs so that the core works beside a part: when it happens, and what it keeps."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimizer_mocks import backend, floats, registry, takes_names
from random_dags import blocks_of, dags, is_acyclic, is_connected, sources

from ferrule._typing import override
from ferrule.backends import Backend, BackendId, BrokenBackendError, Device, Policy
from ferrule.backends.capability import RUNS_BESIDE, CapabilityValue
from ferrule.backends.firmware import DeviceDriver, FirmwareTarget, LoweredOp, LoweringContext
from ferrule.backends.optimization_views import Estimate, OptimizationViews, PreCompiledDescriptor, pre_compiled
from ferrule.backends.target import Face, Goal, Memory, MemoryKind, Target
from ferrule.graph import Graph, SubgraphView
from ferrule.network import Network
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize
from ferrule.optimizer.division import Division, divide
from ferrule.optimizer.partition import extract_subgraphs

COST = 2
FIRMWARE = OptimizerOptions(face=Face.FIRMWARE, simplify=False)


def forked(blocks: int = 1, shape: tuple[int, ...] = (1, 4)) -> Network:
    """Return blocks of a fork, a branch of two layers and a branch of one, `core...`, and a join."""
    network = Network("forked")
    tensor = network.add_input(floats("x", shape))
    for index in range(blocks):
        fork = network.add_relu_layer(tensor, name=f"fork{index}")
        near = network.add_relu_layer(network.add_relu_layer(fork, name=f"a{index}"), name=f"b{index}")
        tensor = network.add_add_layer(near, network.add_tanh_layer(fork, name=f"core{index}"), name=f"join{index}")
    network.set_outputs([tensor])
    return network


def divided(graph: Graph, owned: Sequence[str], times: Mapping[str, int], cost: int = COST) -> list[Division]:
    """Return the divisions of all subgraphs of a device; a layer without a time takes 1000 cycles."""
    cycles = {layer.name: times.get(layer.name, 1000) for layer in graph.layers}
    return divide(extract_subgraphs(graph, owned), owned, cycles, cost)


def names(divisions: Sequence[Division]) -> list[list[tuple[str, ...]]]:
    return [[part.names for part in division.parts] for division in divisions]


# ---- the rule


def test_what_the_reader_does_not_need_is_a_subgraph_of_its_own() -> None:
    (fork, join) = divided(forked(), ["fork0", "a0", "b0", "join0"], {"a0": 300, "b0": 400, "core0": 600})
    assert [part.names for part in fork.parts] == [("fork0",), ("a0", "b0")]
    assert fork.concurrent == ("core0",)
    assert fork.gain == 600 - COST - 16  # the shorter side, less another subgraph and the 16 bytes that it reads
    assert [part.names for part in join.parts] == [("join0",)]


@pytest.mark.parametrize(
    ("times", "cost"),
    [({"core0": 18}, COST), ({"a0": 10, "b0": 8}, COST), ({}, 1000 - 16)],
    ids=["the reader's work", "the rest", "another subgraph"],
)
def test_a_gain_below_the_cost_divides_nothing(times: dict[str, int], cost: int) -> None:
    graph, owned = forked(), ["fork0", "a0", "b0", "join0"]
    assert names(divided(graph, owned, times, cost)) == [[("fork0", "a0", "b0")], [("join0",)]]
    longer = {name: time + 1 for name, time in times.items()}
    assert names(divided(graph, owned, longer, cost - (not times)))[0] == [("fork0",), ("a0", "b0")]


def test_each_block_is_divided_on_its_own() -> None:
    graph = forked(3)
    owned = [layer.name for layer in graph.layers if not layer.name.startswith("core")]
    found = names(divided(graph, owned, {"core1": 5}))
    assert found[0] == [("fork0",), ("a0", "b0")]
    assert found[1] == [("join0", "fork1", "a1", "b1")]
    assert found[2] == [("join1", "fork2"), ("a2", "b2")]


def backbone() -> Network:
    """Return a chain a, b, c, d with readers of a and of b, and a join of all."""
    network = Network("backbone")
    a = network.add_relu_layer(network.add_input(floats("x")), name="a")
    b = network.add_relu_layer(a, name="b")
    d = network.add_relu_layer(network.add_relu_layer(b, name="c"), name="d")
    heads = [network.add_tanh_layer(tensor, name=name) for tensor, name in ((a, "core_a"), (b, "core_b"))]
    network.set_outputs([d, *heads])
    return network


@pytest.mark.parametrize(
    ("times", "parts"),
    [
        ({}, [("a", "b"), ("c", "d")]),  # the core has enough to do beside the second part
        ({"c": 500, "d": 500}, [("a",), ("b",), ("c", "d")]),
        ({"core_a": 9_000}, [("a",), ("b", "c", "d")]),  # the core is busy to the end, whenever b ends
        ({"core_b": 9_000, "core_a": 10}, [("a", "b"), ("c", "d")]),
        ({"core_a": 9, "core_b": 9}, [("a", "b", "c", "d")]),
    ],
)
def test_several_readers(times: dict[str, int], parts: list[tuple[str, ...]]) -> None:
    assert names(divided(backbone(), ["a", "b", "c", "d"], times)) == [parts]


def test_a_core_with_other_work_gains_nothing() -> None:
    network = forked()
    network.add_tanh_layer("x", name="other")
    owned = ["fork0", "a0", "b0", "join0"]
    assert len(divided(network, owned, {"other": 5_000})[0].parts) == 1
    assert len(divided(network, owned, {"other": 500})[0].parts) == 2


def test_a_reader_that_waits_for_another_subgraph_cannot_begin_early() -> None:
    network = Network("late")
    x = network.add_input(floats("x"))
    fork = network.add_relu_layer(x, name="fork")
    rest = network.add_relu_layer(fork, name="rest")
    other = network.add_relu_layer(network.add_tanh_layer(x, name="before"), name="other")
    network.set_outputs([network.add_add_layer(fork, other, name="core"), rest])
    owned = ["fork", "rest", "other"]
    assert all(len(division.parts) == 1 for division in divided(network, owned, {"before": 10}))


def joined(*, late: int = 2) -> Network:
    """Return a branch of two layers of a device and a branch of `late` layers of the core and one of the device, and
    their join.
    """
    network = Network("joined")
    x = network.add_input(floats("x", (1, 4)))
    early = network.add_relu_layer(network.add_relu_layer(x, name="a"), name="b")
    tensor = x
    for index in range(late):
        tensor = network.add_tanh_layer(tensor, name=f"core{index}")
    behind = network.add_relu_layer(tensor, name="c")
    network.set_outputs([network.add_add_layer(early, behind, name="join")])
    return network


JOINED = ["a", "b", "c", "join"]


def test_what_does_not_need_a_late_input_is_a_subgraph_of_its_own() -> None:
    (division,) = divided(joined(), JOINED, {"a": 300, "b": 400, "core0": 100, "core1": 500})
    assert [part.names for part in division.parts] == [("a", "b"), ("c", "join")]
    assert division.concurrent == ("core1",)
    assert division.gain == 600 - COST - 16, "the shorter side, less another subgraph and the 16 bytes that it reads"


@pytest.mark.parametrize(
    ("times", "cost"),
    [({"core0": 9, "core1": 9}, COST), ({"a": 10, "b": 8}, COST), ({}, 2000 - 16)],
    ids=["the writer's work", "the part beside it", "another subgraph"],
)
def test_a_late_input_that_gains_less_than_it_costs_divides_nothing(times: dict[str, int], cost: int) -> None:
    assert len(divided(joined(), JOINED, times, cost)[0].parts) == 1
    longer = {name: time + 1 for name, time in times.items()}
    assert len(divided(joined(), JOINED, longer, cost - (not times))[0].parts) == 2


def test_a_device_with_other_work_beside_the_writer_gains_nothing() -> None:
    network = joined()
    network.set_outputs(["join", network.add_relu_layer("x", name="other")])
    owned = [*JOINED, "other"]
    assert len(divided(network, owned, {"core0": 100, "core1": 500, "other": 590})[0].parts) == 1
    assert len(divided(network, owned, {"core0": 100, "core1": 500, "other": 10})[0].parts) == 2


@pytest.mark.parametrize("source", ["join", "core1"], ids=["the subgraph", "the writer"])
def test_work_that_waits_is_not_other_work(source: str) -> None:
    """A layer of the device that runs after the subgraph, or after the writer, cannot run beside the writer."""
    network = joined()
    behind = network.add_tanh_layer(source, name="between")
    for index in range(2):
        behind = network.add_relu_layer(behind, name=f"behind{index}")
    network.set_outputs(["join", behind])
    times = {"core0": 100, "core1": 500, "behind0": 300, "behind1": 290}
    found = divided(network, [*JOINED, "behind0", "behind1"], times)
    assert names(found) == [[("a", "b"), ("c", "join")], [("behind0", "behind1")]]


@pytest.mark.parametrize(("time", "beside"), [(COST, ("early",)), (COST + 1, ("early", "late"))])
def test_a_cut_between_layers_that_no_tensor_connects_must_save_the_cost_too(
    time: int, beside: tuple[str, ...]
) -> None:
    """Without `fork`, `a` and `b` are two subgraphs in any case; `late` reads one of them."""
    network = Network("three")
    fork = network.add_relu_layer(network.add_input(floats("x", (1, 4))), name="fork")
    a, b = (network.add_relu_layer(fork, name=name) for name in "ab")
    readers = [network.add_tanh_layer(tensor, name=name) for tensor, name in ((fork, "early"), (a, "late"))]
    network.set_outputs([b, *readers])
    (division,) = divided(network, ["fork", "a", "b"], {"early": 500, "late": time, "b": 100})
    assert [part.names for part in division.parts] == [("fork",), ("a",), ("b",)]
    assert division.concurrent == beside
    first = 500 - 2 * COST - 16  # two more subgraphs, and the 16 bytes that they read
    assert division.gain == first + (time if time > COST else 0)


def test_a_late_input_of_all_layers_divides_nothing() -> None:
    network = Network("late")
    first = network.add_tanh_layer(network.add_input(floats("x")), name="core")
    network.set_outputs([network.add_relu_layer(network.add_relu_layer(first, name="a"), name="b")])
    assert len(divided(network, ["a", "b"], {})[0].parts) == 1


def test_a_writer_that_needs_the_part_itself_saves_nothing() -> None:
    """The core works between the two, beside neither; they are two subgraphs in any case."""
    network = Network("between")
    a = network.add_relu_layer(network.add_input(floats("x")), name="a")
    network.set_outputs([network.add_relu_layer(network.add_tanh_layer(a, name="core"), name="b")])
    assert names(divided(network, ["a", "b"], {})) == [[("a",)], [("b",)]]


def test_early_readers_and_late_inputs_divide_one_subgraph() -> None:
    network = joined()
    network.set_outputs(["join", network.add_tanh_layer("c", name="reader")])
    times = {"core0": 2_000, "join": 3_000, "reader": 2_500}
    (division,) = divided(network, JOINED, times)
    assert [part.names for part in division.parts] == [("a", "b"), ("c",), ("join",)]
    assert division.concurrent == ("core1", "reader")


@settings(max_examples=150)
@given(dags(), st.data())
def test_parts_are_disjoint_connected_and_make_no_cycle(
    case: tuple[Graph, frozenset[str]], data: st.DataObject
) -> None:
    graph, chosen = case
    times = {layer.name: data.draw(st.sampled_from((0, 20, 1_000, 50_000))) for layer in graph.layers}
    owned = [layer.name for layer in graph.layers if layer.name in chosen]
    divisions = divided(graph, owned, times, data.draw(st.sampled_from((0, 10, 1_000))))
    for view, division in zip(extract_subgraphs(graph, owned), divisions, strict=True):
        assert sorted(itertools.chain(*(part.names for part in division.parts))) == sorted(view.names)
        assert (len(division.parts) > 1) is (division.gain > 0) is bool(division.concurrent)
    parts = list(itertools.chain(*names(divisions)))
    assert all(is_connected(graph, part) for part in parts)
    assert is_acyclic(graph, blocks_of(graph, parts))


def shortest_run(graph: Graph, parts: Sequence[tuple[str, ...]], times: Mapping[str, int], owned: Sequence[str]) -> int:
    """Return the shortest time of a core and a device over all orders; the device begins a block when it is free."""
    block = blocks_of(graph, parts)
    before = sources(graph, block)
    lengths = dict.fromkeys(before, 0)
    for name, of in block.items():
        lengths[of] += times[name]

    def runs(order: tuple[str, ...], core: int, device: int, ends: dict[str, int]) -> Iterator[int]:
        if len(order) == len(before):
            yield max(core, device)
        for name in before.keys() - set(order):
            if before[name] <= set(order):
                now = max([core, *(ends[need] for need in before[name])])
                if name in owned:
                    now = max(now, device)
                    yield from runs((*order, name), now, now + lengths[name], ends | {name: now + lengths[name]})
                else:
                    now += lengths[name]
                    yield from runs((*order, name), now, device, ends | {name: now})

    return min(runs((), 0, 0, {}))


def test_the_estimated_gain_is_that_of_the_best_runs() -> None:
    """Except where several subgraphs count on the same work of the core."""
    estimated, real = 0, 0
    for seed in range(200):
        dice = random.Random(seed)
        network = Network("dag")
        tensors = [network.add_input(floats("x", (1, 1)))]
        for index in range(dice.randint(4, 8)):
            tensors.append(network.add_add_layer(dice.choice(tensors), dice.choice(tensors), name=f"l{index}"))
        network.set_outputs([tensors[-1]])
        owned = [layer.name for layer in network.layers if dice.random() < 0.6]
        times = {layer.name: dice.choice((100, 1_000, 5_000)) for layer in network.layers}
        divisions = divided(network, owned, times, cost=0)
        gain = sum(division.gain for division in divisions)
        if gain:
            views = [view.names for view in extract_subgraphs(network, owned)]
            parts = list(itertools.chain(*names(divisions)))
            estimated += gain
            real += shortest_run(network, views, times, owned) - shortest_run(network, parts, times, owned)
    assert 0.9 * estimated <= real < 1.1 * estimated


# ---- in the optimizer


class NoCode:
    """A firmware face for the core, which is never asked for code."""

    def lower(self, context: LoweringContext) -> LoweredOp:
        raise AssertionError("the optimizer generates nothing")


class NoDriver(NoCode):
    """The same for a device."""

    def driver(self, device: Device) -> DeviceDriver:
        return DeviceDriver(driver="npu", header="npu.h", context="npu", depth=1)


def compiled(view: SubgraphView, estimate: Estimate | None) -> OptimizationViews:
    """Return a subgraph as one pre-compiled layer."""
    descriptor = PreCompiledDescriptor(payload=view.names, estimate=estimate)
    return OptimizationViews(substitutions=(pre_compiled(f"{view.names[-1]}/npu", view, descriptor),))


def program(view: SubgraphView, cycles: Mapping[str, int], extra: int, others: Sequence[str] = ()) -> OptimizationViews:
    """Return a subgraph as one pre-compiled layer, whose compiler states the cycles of each layer, 1000 by default."""
    layers = tuple((name, cycles.get(name, 1_000)) for name in (*view.names, *others))
    total = sum(time for _, time in layers) + extra
    return compiled(view, Estimate(source="the test", clock_hz=1, cycles=total, layers=layers))


def npu(
    cycles: Mapping[str, int],
    cost: CapabilityValue | None = COST,
    *,
    answer: Callable[[SubgraphView], OptimizationViews] | None = None,
    policy: Policy = Policy(),  # noqa: B008 - it is frozen
    extra: int = 0,
) -> type[Backend]:
    """Return a backend with a device for all layers but `core...`; each subgraph takes `extra` cycles more."""
    wanted = [f"{name}{index}" for name in ("fork", "a", "b", "join") for index in range(3)]
    given = {} if cost is None else {RUNS_BESIDE: cost}

    class Npu(
        backend(  # type: ignore[misc]
            "Npu",
            takes_names(wanted),
            optimise=answer or (lambda view: program(view, cycles, extra)),
            capabilities=given,
        )
    ):
        @override
        def firmware_target(self) -> FirmwareTarget:
            return NoDriver()

        @override
        def policy(self, target: Target) -> Policy:
            return policy

    return Npu


class Core(backend("Core")):  # type: ignore[misc]
    """The core, which takes what is left."""

    @override
    def firmware_target(self) -> FirmwareTarget:
        return NoCode()


def optimised(
    kind: type[Backend], options: OptimizerOptions = FIRMWARE, graph: Graph | None = None
) -> OptimizedNetwork:
    return optimize(graph or forked(shape=WIDE), ["Npu", "Core"], registry(kind, Core), options)


def made(result: OptimizedNetwork) -> list[tuple[str, ...]]:
    """Return the layers of each program."""
    return [result.replaced[layer.name] for layer in result.graph.layers if layer.name in result.replaced]


WIDE = (1, 400)
"""The shape of tensors that take the core 3,200 cycles each, and have 1,600 bytes."""
WHOLE = [("fork0", "a0", "b0"), ("join0",)]
PARTS = [("fork0",), ("a0", "b0"), ("join0",)]


def test_a_fork_is_divided_and_a_note_says_why() -> None:
    result = optimised(npu({}))
    assert made(result) == PARTS
    assert result.notes == (
        "'fork0' and 2 more of Npu: 2 subgraphs, divided before 'a0', so that 'core0' can run beside a part: "
        'about 398 cycles less, as estimated; overlap = "off" leaves one',
    )
    assert not any(note in result.warnings for note in result.notes)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (npu({}, None), {}),
        (npu({}), {"overlap": False}),
        (npu({}), {"goal": Goal.MEMORY}),
        (npu({}), {"goal": Goal.SIZE}),
        (npu({}), {"face": Face.HOST}),
        (npu({}, policy=Policy(least_layers=2)), {"hints": {"fork0": "Npu", "join0": "Npu"}}),
        (npu({}, 400), {}),
        (npu({"fork0": 40_000}), {}),
        (
            npu({}),
            {
                "memories": (
                    Memory(
                        name="r",
                        address=0,
                        size_bytes=9,
                        kind=MemoryKind.RAM,
                        cacheable=True,
                        line_bytes=32,
                        masters=(),
                    ),
                )
            },
        ),
        (npu({}, answer=lambda view: OptimizationViews(untouched=(view,))), {}),
        (npu({}, answer=lambda view: compiled(view, None)), {}),
        (npu({}, answer=lambda view: program(view, {}, 0, ["core0"])), {}),
    ],
    ids=[
        "capability",
        "overlap",
        "memory",
        "size",
        "host",
        "policy",
        "cost",
        "a part in a hundred",
        "cache",
        "program",
        "estimate",
        "estimate of other layers",
    ],
)
def test_a_network_stays_as_it_was(kind: type[Backend], changes: dict[str, Any]) -> None:
    """Without the capability, with overlap off, where a goal forbids it, and where it does not pay."""
    result = optimised(kind, replace(FIRMWARE, **changes))
    assert made(result) in (WHOLE, [])
    assert result.notes == ()


def test_the_least_gain_is_a_part_in_a_hundred() -> None:
    """It is 398 cycles of `fork0`, 3 layers of 1,000 cycles and 3,200 cycles of the core."""
    assert made(optimised(npu({"fork0": 33_600}))) == PARTS
    assert made(optimised(npu({"fork0": 33_601}))) == WHOLE


@pytest.mark.parametrize(("kind", "line_bytes"), [(MemoryKind.RAM, 0), (MemoryKind.FLASH, 32)])
def test_a_subgraph_costs_more_only_where_ram_is_cached(kind: MemoryKind, line_bytes: int) -> None:
    memory = Memory(
        name="m", address=0, size_bytes=9, kind=kind, cacheable=line_bytes > 0, line_bytes=line_bytes, masters=()
    )
    assert made(optimised(npu({}), replace(FIRMWARE, memories=(memory,)))) == PARTS


def test_parts_that_take_longer_stay_together() -> None:
    result = optimised(npu({}, extra=398))
    assert made(result) == WHOLE
    (note,) = result.notes
    assert note.startswith("'fork0' and 2 more of Npu: one subgraph, since in 2 parts the device takes 398 cycles more")
    assert made(optimised(npu({}, extra=397))) == PARTS


def test_a_part_that_does_not_compile_stays_in_the_whole() -> None:
    def answer(view: SubgraphView) -> OptimizationViews:
        return program(view, {}, 0) if "fork0" in view.names else OptimizationViews(failed=(view,))

    result = optimised(npu({}, answer=answer))
    assert made(result) == WHOLE[:1]
    assert "a part alone, to run beside 'core0', does not compile" in result.notes[0]


def test_goals_that_allow_it() -> None:
    for goal in (Goal.SPEED, Goal.BALANCED):
        assert made(optimised(npu({}), replace(FIRMWARE, goal=goal))) == PARTS


def test_a_late_input_is_divided_in_the_optimizer() -> None:
    network = Network("late")
    x = network.add_input(floats("x", WIDE))
    near = network.add_relu_layer(network.add_relu_layer(x, name="a0"), name="b0")
    late = network.add_relu_layer(network.add_tanh_layer(x, name="core"), name="a1")
    network.set_outputs([network.add_add_layer(near, late, name="join0")])
    result = optimised(npu({"a0": 2_000, "b0": 2_000}), graph=network)
    assert made(result) == [("a0", "b0"), ("a1", "join0")]
    assert "so that 'core' can run beside a part" in result.notes[0]
    assert made(optimised(npu({}), replace(FIRMWARE, overlap=False), network)) == [("a0", "b0", "a1", "join0")]


def test_several_blocks_count_together() -> None:
    """Each saves less than a hundredth of the run, all of them more."""
    graph = forked(3, WIDE)
    times = dict.fromkeys((layer.name for layer in graph.layers), 900)
    assert len(made(optimised(npu(times, 100), graph=graph))) == 7
    assert len(made(optimised(npu(times | {"fork0": 20_000}, 100), graph=graph))) == 4


def test_another_device_is_a_reader_too() -> None:
    devices = tuple(Device(name=f"npu{index}", backend=BackendId("Npu")) for index in range(2))
    hints = {"a0": "Npu/npu1", "b0": "Npu/npu1"}
    options = replace(FIRMWARE, devices=devices, hints=hints)
    network = forked(shape=WIDE)
    network.set_outputs(["join0", network.add_relu_layer("fork0", name="a1")])
    assert sorted(made(optimised(npu({"a1": 2_000}), options, network))) == [
        ("a0", "b0"),
        ("a1",),
        ("fork0",),
        ("join0",),
    ]


@pytest.mark.parametrize("value", [True, -1, 2.5, "yes"])
def test_a_wrong_capability_is_an_error_that_names_the_backend(value: CapabilityValue) -> None:
    with pytest.raises(BrokenBackendError, match=r"'Npu'.*RunsBeside is .*, expected instructions, 0 or more"):
        optimised(npu({}, value))
