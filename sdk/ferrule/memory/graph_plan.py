# SPDX-License-Identifier: Apache-2.0
"""Plans a whole graph: order of layers, lifetimes, aliases and placements."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ferrule.graph import Graph
from ferrule.memory.aliases import views
from ferrule.memory.arena import round_up
from ferrule.memory.lifetimes import Lifetime, lifetimes
from ferrule.memory.ordering import Ordering, measure_order, order_layers
from ferrule.memory.placement import Plan
from ferrule.memory.planner import plan
from ferrule.memory.region import Region
from ferrule.memory.request import Access, Alias, AliasKind, BufferKind, Overlap, Request, Tie, Untied
from ferrule.memory.search import Effort
from ferrule.memory.states import STATE_WORD, STATE_WORD_BYTES, carried_states, state_groups
from ferrule.memory.storage import group_names
from ferrule.memory.ties import forbidden_ties, kept_ties
from ferrule.memory.verify import Schedule, Step, schedule_of_graph, verify

DEFAULT_ALIGNMENT = 16
"""In bytes; the same alignment as in TensorFlow Lite Micro, so that figures can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPlan:
    """The order of a graph's layers and the placement of their buffers."""

    ordering: Ordering
    requests: tuple[Request, ...]
    aliases: tuple[Alias, ...]
    overlaps: tuple[Overlap, ...]
    plan: Plan
    ties: tuple[Tie, ...] = ()
    """The ties that the plan keeps."""
    untied: tuple[Untied, ...] = ()
    """The others: each buffer must be copied between its own place and the scratch."""


def scratch_name(layer: str, part: str = "") -> str:
    """Return the name of a layer's scratch buffer in a plan; `part` is the name of one besides the usual one."""
    return f"{layer}:scratch{':' if part else ''}{part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchNeed:
    """Scratch of a layer besides its usual one."""

    part: str
    """See `scratch_name`."""
    size_bytes: int
    alignment: int


def plan_graph(
    graph: Graph,
    regions: Sequence[Region],
    *,
    alignment: int = DEFAULT_ALIGNMENT,
    scratch_bytes: Mapping[str, int] | None = None,
    scratch_alignment: Mapping[str, int] | None = None,
    more_scratch: Mapping[str, Sequence[ScratchNeed]] | None = None,
    allowed: Mapping[str, tuple[str, ...]] | None = None,
    accesses: Mapping[str, Access] | None = None,
    shared: Sequence[Alias] | None = None,
    in_place: Sequence[Alias] = (),
    overlaps: Sequence[Overlap] = (),
    ties: Mapping[str, Sequence[Tie]] | None = None,
    order: Sequence[str] | None = None,
    ends: Mapping[str, int] | None = None,
    queues: Mapping[str, str] | None = None,
    constant_outputs: bool = False,
    state: Region | None = None,
    effort: Effort | None = None,
) -> GraphPlan:
    """Choose an order of the layers (unless `order` is given) and lay out all non-constant tensors.

    `scratch_bytes` and `scratch_alignment` (by default `alignment`) are by layer; a layer's scratch buffer has the name
    `scratch_name(layer)`. `more_scratch` is besides it; the order does not depend on it. `allowed` maps a buffer's name
    to its allowed regions, the preferred one first; other buffers may use any region. `accesses` maps a buffer's name
    to the needs of the masters that use it; a buffer that may not share a cache line is padded to whole lines. `ends`
    maps a layer that goes on beside later ones to the last step at which it uses its tensors and its scratch; any other
    layer ends at its own step. Layers with the same queue in `queues` are carried out one after the other, so one may
    read what an earlier one writes. `shared` lists the views, by default all views of the graph; `in_place` lists the
    outputs that kernels write in place. With `constant_outputs`, graph outputs that are constants get a buffer that is
    live at the last step.

    `ties` are by layer: inputs and outputs at fixed places inside its scratch. The plan keeps a tie unless that would
    lose bytes, break an alignment, or contradict another tie or the allowed regions; the result names the others.

    `state` is the region of the graph's states, which nothing else may use, since it lives from run to run; it also
    holds the word STATE_WORD. Without it, a run's states are laid out like inputs and outputs. A new value is written
    in the old one's place where that is possible (see `carried_states`); otherwise, the old one keeps its bytes to the
    end of the run.

    Raises:
        ArenaOverflowError: see `plan`.
        ModelError: `order` is not a valid order of the graph.
        PlanError: replaying the run shows that the plan is wrong, which is a bug in Ferrule.
    """
    needed = {layer: size for layer, size in (scratch_bytes or {}).items() if size > 0}
    aliases = (*(views(graph) if shared is None else shared), *in_place)
    beside = _beside_tied(graph, aliases, needed, ties or {}, alignment)
    ordering = (
        order_layers(graph, aliases=aliases, scratch_bytes=beside, alignment=alignment, overlaps=overlaps)
        if order is None
        else measure_order(graph, order, aliases=aliases, scratch_bytes=beside, alignment=alignment, overlaps=overlaps)
    )
    copied = _constant_outputs(graph, len(ordering.layers)) if constant_outputs else {}
    lives = lifetimes(graph, ordering.layers, ends) | copied
    overlaps = _outlived(graph, aliases, overlaps, ordering.layers, ends or {})
    run = schedule_of_graph(graph, ordering.layers, {layer: scratch_name(layer) for layer in needed}, ends, queues)
    run = _with_scratch(run, more_scratch or {})
    run = _with_copies(run, tuple(copied))
    persistent: tuple[Request, ...] = ()
    if state is not None:
        carried = _carried(graph, ordering.layers, aliases, overlaps, regions[0], state, ends, allowed, accesses)
        aliases = (*aliases, *carried)
        allowed = {**(allowed or {}), **_placed_states(graph, aliases, state)}
        kept = _kept_states(graph, carried)
        overlaps = _without_inputs(graph, overlaps, aliases, kept)
        persistent, lives, run = _persistent(kept, lives, run, state, steps=len(ordering.layers))
    alignments = {layer: (scratch_alignment or {}).get(layer, alignment) for layer in needed}
    plain = (
        *_tensors(graph, lives, regions, alignment, allowed or {}, _askew(aliases, lives, ties or {}, alignment)),
        *_scratch(ordering.layers, regions, needed, alignments, allowed or {}, ends or {}, more_scratch or {}),
    )
    requests = (
        *(_with_access(request, (accesses or {}).get(request.name)) for request in plain),
        *persistent,
    )
    places = regions if state is None else (*regions, state)
    forbidden = forbidden_ties(graph, ordering.layers, aliases, ties or {}, lives, ends or {})
    wanted = [tie for layer in ordering.layers for tie in (ties or {}).get(layer, ())]
    # The core waits for a layer whose outputs it copies, so one that works beside others keeps its places.
    beside_others = {tie.scratch for layer in ends or {} for tie in (ties or {}).get(layer, ())}
    held, untied = kept_ties(wanted, requests, places, aliases, forbidden, beside_others)
    found = plan(requests, places, aliases=aliases, overlaps=overlaps, ties=held, effort=effort)
    verify(found, requests, places, run, aliases=aliases, overlaps=overlaps, ties=held)
    return GraphPlan(
        ordering=ordering,
        requests=requests,
        aliases=aliases,
        overlaps=tuple(overlaps),
        plan=found,
        ties=held,
        untied=untied,
    )


def _beside_tied(
    graph: Graph,
    aliases: Sequence[Alias],
    scratch_bytes: Mapping[str, int],
    ties: Mapping[str, Sequence[Tie]],
    alignment: int,
) -> dict[str, int]:
    """Return, by layer, the bytes of scratch besides those of tied tensors; negative if tied tensors overlap."""
    views = [alias for alias in aliases if alias.kind is AliasKind.VIEW]
    group = group_names((tensor.info.name for tensor in graph.tensors), views) if ties else {}
    found = dict(scratch_bytes)
    for layer, mine in ties.items():
        sizes: dict[str, int] = {}
        for tie in mine:
            if not 0 <= tie.offset <= scratch_bytes.get(layer, 0) - graph.info(tie.buffer).size_bytes:
                raise ValueError(
                    f"'{tie.buffer}' is tied to byte {tie.offset} of '{tie.scratch}', which ends before it"
                )
            root = group[tie.buffer]
            sizes[root] = max(sizes.get(root, 0), graph.info(tie.buffer).size_bytes)
        found[layer] -= sum(round_up(size, alignment) for size in sizes.values())
    return found


def _askew(
    aliases: Sequence[Alias], lives: Mapping[str, Lifetime], ties: Mapping[str, Sequence[Tie]], alignment: int
) -> frozenset[str]:
    """Return the tensors whose storage is tied to a place that is no multiple of the tensors' usual alignment."""
    group = group_names(lives, aliases)
    roots = {group[tie.buffer] for mine in ties.values() for tie in mine if tie.offset % alignment}
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


def _outlived(
    graph: Graph,
    aliases: Sequence[Alias],
    overlaps: Sequence[Overlap],
    order: Sequence[str],
    ends: Mapping[str, int],
) -> tuple[Overlap, ...]:
    """Return the overlaps whose input nothing else needs when the output is written.

    Graph outputs are read after the last layer, too, and the tensors of a layer that goes on are in use until its end.
    """
    views = [alias for alias in aliases if alias.kind is AliasKind.VIEW]
    group = group_names((tensor.info.name for tensor in graph.tensors), views)
    kept = {group[info.name] for info in graph.results}
    steps = {layer: step for step, layer in enumerate(order)}
    beside: dict[int, set[str]] = {}
    """By step: the groups of the tensors of layers that were begun before and go on."""
    for name, end in ends.items():
        layer = graph.layer(name)
        for step in range(steps[name] + 1, end + 1):
            beside.setdefault(step, set()).update(group[each] for each in (*layer.present_inputs, *layer.outputs))

    def in_use(overlap: Overlap) -> bool:
        writer = graph.producer(overlap.output)
        return writer is not None and group[overlap.input] in beside.get(steps[writer.name], ())

    return tuple(each for each in overlaps if group[each.input] not in kept and not in_use(each))


def _constant_outputs(graph: Graph, steps: int) -> dict[str, Lifetime]:
    """Return the lifetimes of graph outputs that are constants: the last step, where they are copied."""
    last = Lifetime(first=max(steps - 1, 0), last=max(steps - 1, 0))
    return {info.name: last for info in graph.outputs if graph.tensor(info.name).is_constant}


def _with_scratch(run: Schedule, needs: Mapping[str, Sequence[ScratchNeed]]) -> Schedule:
    """Return a run whose layers also write the scratch besides their usual one."""
    steps = (
        replace(step, writes=(*step.writes, *(scratch_name(step.name, need.part) for need in needs.get(step.name, ()))))
        for step in run.steps
    )
    return replace(run, steps=tuple(steps))


def _with_copies(run: Schedule, outputs: tuple[str, ...]) -> Schedule:
    """Return a run that also writes the given outputs, after all layers."""
    last = Step(name="constant outputs", writes=outputs)
    return replace(run, steps=(*run.steps, last), outputs=(*run.outputs, *outputs))


def _carried(
    graph: Graph,
    order: Sequence[str],
    aliases: Sequence[Alias],
    overlaps: Sequence[Overlap],
    workspace: Region,
    state: Region,
    ends: Mapping[str, int] | None,
    allowed: Mapping[str, tuple[str, ...]] | None,
    accesses: Mapping[str, Access] | None,
) -> tuple[Alias, ...]:
    """Return the aliases of the states whose new value is written in place; their users must reach the region."""

    def may_move(name: str) -> bool:
        access = (accesses or {}).get(name)
        reached = access is None or access.masters <= state.reachable_by
        return reached and workspace.name in (allowed or {}).get(name, (workspace.name,))

    return carried_states(graph, order, aliases, overlaps, ends or {}, may_move)


def _placed_states(graph: Graph, aliases: Sequence[Alias], state: Region) -> dict[str, tuple[str, ...]]:
    """Return the only allowed region of the tensors whose bytes are those of a state."""
    group = state_groups(graph, aliases)
    roots = {each.source for each in graph.states} | {a.output for a in aliases if a.kind is AliasKind.CARRIED}
    return {name: (state.name,) for name, root in group.items() if root in roots}


def _kept_states(graph: Graph, carried: Sequence[Alias]) -> tuple[str, ...]:
    """Return the old values that keep their bytes to the end of the run."""
    replaced = {alias.input for alias in carried}
    return tuple(each.source for each in graph.states if each.source not in replaced)


def _without_inputs(
    graph: Graph, overlaps: Sequence[Overlap], aliases: Sequence[Alias], kept: Sequence[str]
) -> tuple[Overlap, ...]:
    """Return the overlaps without those that would overwrite a tensor that is kept."""
    group = state_groups(graph, aliases)
    return tuple(each for each in overlaps if group[each.input] not in kept)


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


def _tensors(
    graph: Graph,
    lives: Mapping[str, Lifetime],
    regions: Sequence[Region],
    alignment: int,
    allowed: Mapping[str, tuple[str, ...]],
    askew: Collection[str],
) -> Iterator[Request]:
    """Yield the requests of the tensors; those in `askew` are aligned for their elements only."""
    anywhere = tuple(region.name for region in regions)
    for name, lifetime in lives.items():
        info = graph.info(name)
        yield Request(
            name=name,
            size_bytes=info.size_bytes,
            alignment=info.dtype.size_bytes if name in askew else alignment,
            lifetime=lifetime,
            regions=allowed.get(name, anywhere),
        )


def _scratch(
    order: Sequence[str],
    regions: Sequence[Region],
    sizes: Mapping[str, int],
    alignments: Mapping[str, int],
    allowed: Mapping[str, tuple[str, ...]],
    ends: Mapping[str, int],
    more: Mapping[str, Sequence[ScratchNeed]],
) -> Iterator[Request]:
    anywhere = tuple(region.name for region in regions)
    for step, layer in enumerate(order):
        usual = (ScratchNeed(part="", size_bytes=sizes[layer], alignment=alignments[layer]),) if layer in sizes else ()
        for need in (*usual, *more.get(layer, ())):
            name = scratch_name(layer, need.part)
            yield Request(
                name=name,
                size_bytes=need.size_bytes,
                alignment=need.alignment,
                lifetime=Lifetime(first=step, last=ends.get(layer, step)),
                regions=allowed.get(name, anywhere),
                kind=BufferKind.SCRATCH,
            )
