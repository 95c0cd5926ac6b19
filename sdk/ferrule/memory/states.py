# SPDX-License-Identifier: Apache-2.0
"""Finds the states whose new value can be written where the old one lies, so that no second buffer is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ferrule.graph import Graph, Layer
from ferrule.memory.request import Alias, AliasKind, Overlap
from ferrule.memory.storage import group_names

STATE_WORD = "valid:state"
"""The name of the buffer of the word that marks the states of an instance as valid."""
STATE_WORD_BYTES = 4


def view_groups(graph: Graph, aliases: Sequence[Alias]) -> dict[str, str]:
    """Return, by tensor, the tensor at the root of its views."""
    views = [alias for alias in aliases if alias.kind is AliasKind.VIEW]
    return group_names((tensor.info.name for tensor in graph.tensors), views)


def carried_states(
    graph: Graph,
    order: Sequence[str],
    aliases: Sequence[Alias],
    overlaps: Sequence[Overlap],
    ends: Mapping[str, int],
    may_move: Callable[[str], bool],
) -> tuple[Alias, ...]:
    """Return an alias from new to old value for each state whose new value takes the old one's place during a run.

    All readers of the old value must have ended when the new one is written, except the layer that writes it, if its
    kernel states that the two may start at the same byte. Inputs and outputs of the graph keep their own places, and so
    do tensors for which `may_move` is false.
    """
    group = view_groups(graph, aliases)
    steps = {layer: step for step, layer in enumerate(order)}
    fixed = {group[info.name] for info in (*graph.inputs, *graph.outputs)}
    kept = {group[info.name] for info in graph.results}
    readers: dict[str, list[Layer]] = {}
    members: dict[str, list[str]] = {}
    for name, root in group.items():
        readers.setdefault(root, []).extend(graph.consumers(name))
        members.setdefault(root, []).append(name)

    def is_over(old: str, new: str, writer: Layer) -> bool:
        """Whether the old value is no longer needed when its writer begins the new one, or the kernel replaces it."""
        for layer in readers[old]:
            if layer.name == writer.name and writer.name not in ends:
                read = [name for name in layer.present_inputs if group[name] == old]
                if not all(_starts_together(overlaps, new, name) for name in read):
                    return False
            elif ends.get(layer.name, steps[layer.name]) >= steps[writer.name]:
                return False
        return True

    found: dict[str, Alias] = {}
    for state in graph.states:
        old, new = state.source, group[state.result]
        writer = graph.producer(new)
        if writer is None or new in found or new in fixed or old in kept:
            continue
        if is_over(old, new, writer) and all(map(may_move, (*members[old], *members[new]))):
            found[new] = Alias(output=new, input=old, kind=AliasKind.CARRIED)
    return tuple(found.values())


def _starts_together(overlaps: Sequence[Overlap], output: str, source: str) -> bool:
    """Whether a kernel's output may start at the first byte of an input."""
    stated = [each for each in overlaps if (each.output, each.input) == (output, source)]
    return bool(stated) and all(each.distance_bytes is not None and each.distance_bytes <= 0 for each in stated)
