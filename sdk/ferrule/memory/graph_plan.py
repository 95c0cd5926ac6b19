# SPDX-License-Identifier: Apache-2.0
"""Plans a whole graph: order of layers, lifetimes, aliases and placements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from ferrule._frozen import frozen
from ferrule.graph import Graph
from ferrule.memory.arena import round_up
from ferrule.memory.lifetimes import Lifetime, lifetimes
from ferrule.memory.ordering import Ordering, measure_order, order_layers
from ferrule.memory.placement import MemoryPlan
from ferrule.memory.planner import plan
from ferrule.memory.region import Region
from ferrule.memory.request import Access, Alias, AliasKind, BufferKind, Overlap, Request, Tie, Untied
from ferrule.memory.search import Effort
from ferrule.memory.states import STATE_WORD, STATE_WORD_BYTES, carried_states, view_groups
from ferrule.memory.storage import group_names
from ferrule.memory.ties import forbidden_ties, kept_ties
from ferrule.memory.verify import Schedule, Step, schedule_of_graph, verify
from ferrule.operators.table import having

DEFAULT_ALIGNMENT = 16
"""In bytes; the same alignment as in TensorFlow Lite Micro, so that figures can be compared."""


@frozen
class GraphPlan:
    """The order of a graph's layers and the placement of their buffers."""

    ordering: Ordering
    requests: tuple[Request, ...]
    aliases: tuple[Alias, ...]
    overlaps: tuple[Overlap, ...]
    plan: MemoryPlan
    ties: tuple[Tie, ...] = ()
    """The ties that the plan keeps."""
    untied: tuple[Untied, ...] = ()
    """The others: each buffer must be copied between its own place and the scratch."""


def scratch_name(layer: str, part: str = "") -> str:
    """Return the name of a layer's scratch buffer in a plan; `part` is the name of one besides the usual one."""
    return f"{layer}:scratch{':' if part else ''}{part}"


@frozen
class ScratchNeed:
    """Scratch of a layer."""

    part: str = ""
    """See `scratch_name`."""
    size_bytes: int
    alignment: int = DEFAULT_ALIGNMENT


@frozen
class Requirements:
    """What a plan must provide beside a place for each tensor, and what it may make use of."""

    alignment: int = DEFAULT_ALIGNMENT
    """Of the tensors, in bytes."""
    scratch: Mapping[str, Sequence[ScratchNeed]] = field(default_factory=dict)
    """By layer. The order of the layers depends on that without a part's name only."""
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By buffer: its allowed regions, the preferred one first; other buffers may use any region."""
    accesses: Mapping[str, Access] = field(default_factory=dict)
    """By buffer: the needs of the masters that use it. A buffer that may not share a cache line is padded to whole
    lines."""
    shared: Sequence[Alias] | None = None
    """The views; None for all views of the graph."""
    overlaps: Sequence[Overlap] = ()
    ties: Mapping[str, Sequence[Tie]] = field(default_factory=dict)
    """By layer: inputs and outputs at fixed places inside its scratch. The plan keeps a tie unless that would lose
    bytes, break an alignment, or contradict another tie or the allowed regions; the result names the others."""
    order: Sequence[str] | None = None
    """The order of the layers; None to search one."""
    ends: Mapping[str, int] = field(default_factory=dict)
    """By layer that goes on beside later ones: the last step at which it uses its tensors and its scratch. Any other
    layer ends at its own step."""
    queues: Mapping[str, str] = field(default_factory=dict)
    """By layer: its queue. The layers of a queue are carried out one after the other, so one may read what an earlier
    one writes."""
    constant_outputs: bool = False
    """Whether graph outputs that are constants get a buffer, which is live at the last step."""
    state: Region | None = None
    """The region of the graph's states, which nothing else may use, since it lives from run to run; it also holds the
    word STATE_WORD. Without it, a run's states are laid out like inputs and outputs. A new value is written in the old
    one's place where that is possible (see `carried_states`); otherwise, the old one keeps its bytes to the end of the
    run."""
    effort: Effort | None = None


_PLAIN = Requirements()


def views(graph: Graph) -> tuple[Alias, ...]:
    """Return an alias for each layer that only reinterprets the bytes of its input; such a layer needs no code."""
    return tuple(
        Alias(output=layer.outputs[0], input=layer.present_inputs[0], kind=AliasKind.VIEW)
        for layer in graph.layers
        if layer.type in having(view=True) and not graph.tensor(layer.present_inputs[0]).is_constant
    )


def plan_graph(graph: Graph, regions: Sequence[Region], needs: Requirements = _PLAIN) -> GraphPlan:
    """Choose an order of the layers (unless one is required) and lay out all non-constant tensors and the scratch.

    Raises:
        ArenaOverflowError: see `plan`.
        ModelError: the required order is not a valid order of the graph.
        PlanError: replaying the run shows that the plan is wrong, which is a bug in Ferrule.
    """
    aliases = views(graph) if needs.shared is None else tuple(needs.shared)
    ordering = _ordering(graph, aliases, needs)
    order, overlaps = ordering.layers, _outlived(graph, aliases, needs, ordering.layers)
    copied = _constant_outputs(graph, len(order)) if needs.constant_outputs else {}
    lives = lifetimes(graph, order, needs.ends) | copied
    scratch = {layer: [scratch_name(layer, need.part) for need in parts] for layer, parts in needs.scratch.items()}
    run = schedule_of_graph(graph, order, scratch, needs.ends, needs.queues)
    last = Step(name="constant outputs", writes=tuple(copied))
    run = replace(run, steps=(*run.steps, last), outputs=(*run.outputs, *copied))
    persistent: tuple[Request, ...] = ()
    if (state := needs.state) is not None:
        may_move = partial(_may_move, needs, regions[0], state)
        carried = carried_states(graph, order, aliases, overlaps, needs.ends, may_move)
        aliases = (*aliases, *carried)
        needs = replace(needs, allowed={**needs.allowed, **_placed_states(graph, aliases, state)})
        replaced = {alias.input for alias in carried}
        kept = tuple(each.source for each in graph.states if each.source not in replaced)
        group = view_groups(graph, aliases)
        overlaps = tuple(each for each in overlaps if group[each.input] not in kept)
        persistent, lives, run = _persistent(kept, lives, run, state, steps=len(order))
    plain = _plain_requests(graph, order, aliases, lives, regions, needs)
    requests = (*(_with_access(request, needs.accesses.get(request.name)) for request in plain), *persistent)
    places = regions if state is None else (*regions, state)
    forbidden = forbidden_ties(graph, order, aliases, needs.ties, lives, needs.ends)
    wanted = [tie for layer in order for tie in needs.ties.get(layer, ())]
    # The core waits for a layer whose outputs it copies, so one that works beside others keeps its places.
    beside_others = {tie.scratch for layer in needs.ends for tie in needs.ties.get(layer, ())}
    held, untied = kept_ties(wanted, requests, places, aliases, forbidden, beside_others)
    found = plan(requests, places, aliases=aliases, overlaps=overlaps, ties=held, effort=needs.effort)
    verify(found, requests, places, run, aliases=aliases, overlaps=overlaps, ties=held)
    return GraphPlan(
        ordering=ordering,
        requests=requests,
        aliases=aliases,
        overlaps=overlaps,
        plan=found,
        ties=held,
        untied=untied,
    )


def _ordering(graph: Graph, aliases: Sequence[Alias], needs: Requirements) -> Ordering:
    """Return the required order of the layers, or the best one found, with its peak."""
    choose = order_layers if needs.order is None else partial(measure_order, order=needs.order)
    return choose(
        graph,
        aliases=aliases,
        scratch_bytes=_beside_tied(graph, aliases, needs),
        alignment=needs.alignment,
        overlaps=needs.overlaps,
    )


def _beside_tied(graph: Graph, aliases: Sequence[Alias], needs: Requirements) -> dict[str, int]:
    """Return, by layer, the bytes of scratch besides those of tied tensors; negative if tied tensors overlap."""
    group = view_groups(graph, aliases) if needs.ties else {}
    sizes = {layer: sum(n.size_bytes for n in parts if not n.part) for layer, parts in needs.scratch.items()}
    found = dict(sizes)
    for layer, mine in needs.ties.items():
        tied: dict[str, int] = {}
        for tie in mine:
            size_bytes = graph.info(tie.buffer).size_bytes
            if not 0 <= tie.offset <= sizes.get(layer, 0) - size_bytes:
                raise ValueError(
                    f"'{tie.buffer}' is tied to byte {tie.offset} of '{tie.scratch}', which ends before it"
                )
            root = group[tie.buffer]
            tied[root] = max(tied.get(root, 0), size_bytes)
        found[layer] -= sum(round_up(size, needs.alignment) for size in tied.values())
    return found


def _askew(aliases: Sequence[Alias], lives: Mapping[str, Lifetime], needs: Requirements) -> frozenset[str]:
    """Return the tensors whose storage is tied to a place that is no multiple of the tensors' usual alignment."""
    group = group_names(lives, aliases)
    roots = {group[tie.buffer] for mine in needs.ties.values() for tie in mine if tie.offset % needs.alignment}
    return frozenset(name for name, root in group.items() if root in roots)


def _with_access(request: Request, access: Access | None) -> Request:
    """Return a request that meets the needs of the masters that use the buffer."""
    if access is None:
        return request
    lines = -(-request.size_bytes // access.line_bytes)
    return replace(
        request,
        size_bytes=lines * access.line_bytes,
        alignment=math.lcm(request.alignment, access.alignment, access.line_bytes),
        access=access,
    )


def _outlived(graph: Graph, aliases: Sequence[Alias], needs: Requirements, order: Sequence[str]) -> tuple[Overlap, ...]:
    """Return the overlaps whose input nothing else needs when the output is written.

    Graph outputs are read after the last layer, too, and the tensors of a layer that goes on are in use until its end.
    """
    group = view_groups(graph, aliases)
    kept = {group[info.name] for info in graph.results}
    steps = {layer: step for step, layer in enumerate(order)}
    beside: dict[int, set[str]] = {}
    """By step: the groups of the tensors of layers that were begun before and go on."""
    for name, end in needs.ends.items():
        layer = graph.layer(name)
        for step in range(steps[name] + 1, end + 1):
            beside.setdefault(step, set()).update(group[each] for each in (*layer.present_inputs, *layer.outputs))

    def in_use(overlap: Overlap) -> bool:
        writer = graph.producer(overlap.output)
        return writer is not None and group[overlap.input] in beside.get(steps[writer.name], ())

    return tuple(each for each in needs.overlaps if group[each.input] not in kept and not in_use(each))


def _constant_outputs(graph: Graph, steps: int) -> dict[str, Lifetime]:
    """Return the lifetimes of graph outputs that are constants: the last step, where they are copied."""
    last = Lifetime(first=max(steps - 1, 0), last=max(steps - 1, 0))
    return {info.name: last for info in graph.outputs if graph.tensor(info.name).is_constant}


def _may_move(needs: Requirements, workspace: Region, state: Region, name: str) -> bool:
    """Return whether a tensor may lie in the region of the states, which all of its users must reach."""
    access = needs.accesses.get(name)
    reached = access is None or access.masters <= state.reachable_by
    return reached and workspace.name in needs.allowed.get(name, (workspace.name,))


def _placed_states(graph: Graph, aliases: Sequence[Alias], state: Region) -> dict[str, tuple[str, ...]]:
    """Return the only allowed region of the tensors whose bytes are those of a state."""
    group = view_groups(graph, aliases)
    roots = {each.source for each in graph.states} | {a.output for a in aliases if a.kind is AliasKind.CARRIED}
    return {name: (state.name,) for name, root in group.items() if root in roots}


def _persistent(
    kept: Sequence[str], lives: dict[str, Lifetime], run: Schedule, state: Region, *, steps: int
) -> tuple[tuple[Request, ...], dict[str, Lifetime], Schedule]:
    """Return the request of the states' word, and lifetimes and a run in which what is kept is needed to the end."""
    whole = Lifetime(first=0, last=max(steps - 1, 0))
    word = Request(
        name=STATE_WORD,
        size_bytes=STATE_WORD_BYTES,
        alignment=STATE_WORD_BYTES,
        lifetime=whole,
        regions=(state.name,),
    )
    run = replace(run, inputs=(*run.inputs, STATE_WORD), outputs=(*run.outputs, *kept, STATE_WORD))
    return (word,), lives | dict.fromkeys(kept, whole), run


def _plain_requests(
    graph: Graph,
    order: Sequence[str],
    aliases: Sequence[Alias],
    lives: Mapping[str, Lifetime],
    regions: Sequence[Region],
    needs: Requirements,
) -> Iterator[Request]:
    """Yield the requests of the tensors and of the scratch, which disregard the masters that use them."""
    anywhere, askew = tuple(region.name for region in regions), _askew(aliases, lives, needs)
    for name, lifetime in lives.items():
        info = graph.info(name)
        yield Request(
            name=name,
            size_bytes=info.size_bytes,
            alignment=info.dtype.size_bytes if name in askew else needs.alignment,
            lifetime=lifetime,
            regions=needs.allowed.get(name, anywhere),
        )
    for step, layer in enumerate(order):
        for need in needs.scratch.get(layer, ()):
            name = scratch_name(layer, need.part)
            yield Request(
                name=name,
                size_bytes=need.size_bytes,
                alignment=need.alignment,
                lifetime=Lifetime(first=step, last=needs.ends.get(layer, step)),
                regions=needs.allowed.get(name, anywhere),
                kind=BufferKind.SCRATCH,
            )
