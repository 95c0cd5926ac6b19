# SPDX-License-Identifier: Apache-2.0
"""Assigns each layer to the first backend that supports it: the layer's hint, then the preferences in order."""

from __future__ import annotations

from collections.abc import Iterable

from ferrule.backends.device import BackendId
from ferrule.errors import UnsupportedError
from ferrule.graph import GraphEditor, Layer
from ferrule.optimizer.candidate import STRICT_HINT, Bench, Candidate
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.wrapping import Wrapping, apply_wrappings, wrap

_LISTED = 10


class RestartError(Exception):
    """An all-or-nothing backend cannot run the whole network, so the assignment must restart without it."""

    def __init__(self, backend: BackendId, reason: str) -> None:
        super().__init__(f"{backend}: {reason}")
        self.backend = backend
        self.reason = reason


def assign_layers(decisions: Decisions, bench: Bench, layers: Iterable[str]) -> None:
    """Assign each named layer to the first backend that supports it and has not failed on it.

    If a backend supports a float16 layer in float32 only, the layer is assigned to it between conversion layers.

    Raises:
        UnsupportedError: no backend supports some of the layers; the message has every backend's reason.
        RestartError: an all-or-nothing backend refuses a layer.
    """
    editor = GraphEditor(decisions.graph)
    wrappings: dict[str, Wrapping] = {}
    lost = []
    for name in layers:
        layer = decisions.graph.layer(name)
        if not any(_offer(decisions, bench, layer, candidate, editor, wrappings) for candidate in bench.order(name)):
            lost.append(layer)
    if lost:
        raise UnsupportedError(_lament(decisions, bench, lost), hint=None if bench.fallback else STRICT_HINT)
    if wrappings:
        apply_wrappings(decisions, editor, wrappings)


def check_whole(decisions: Decisions, bench: Bench) -> None:
    """Raise RestartError if an all-or-nothing backend has some of the layers, but not all."""
    owners = {given.backend for given in decisions.assignment.values()}
    for candidate in bench.candidates:
        if candidate.all_or_nothing and candidate.id in owners and len(owners) > 1:
            other = next(name for name, given in decisions.assignment.items() if given.backend != candidate.id)
            raise RestartError(
                candidate.id,
                f"it takes whole networks only, and layer '{other}' goes to {decisions.assignment[other].backend}",
            )


def _offer(
    decisions: Decisions,
    bench: Bench,
    layer: Layer,
    candidate: Candidate,
    editor: GraphEditor,
    wrappings: dict[str, Wrapping],
) -> bool:
    if candidate.id in decisions.failed.get(layer.name, ()):
        return False
    reason = candidate.refusal(decisions.graph, layer, bench.device(layer.name, candidate))
    if reason and candidate.all_or_nothing:
        raise RestartError(candidate.id, f"it takes whole networks only, and refuses layer '{layer.name}': {reason}")
    if reason:
        decisions.refuse(layer, candidate.id, reason)
        wrapping = wrap(decisions.graph, layer, editor, bench, candidate)
        if wrapping is None:
            return False
        wrappings[layer.name] = wrapping
        decisions.warn(f"layer '{layer.name}' runs in float32 on {candidate.id}, between conversions: {reason}")
    decisions.give(layer.name, bench.device(layer.name, candidate))
    return True


def _lament(decisions: Decisions, bench: Bench, lost: list[Layer]) -> str:
    what, shown = "cannot run on its first backend", lost
    if bench.fallback:
        wanted = " ".join(candidate.id for candidate in bench.preferred)
        what, shown = f"is not supported on any preferred backend [{wanted}]", lost[:_LISTED]
    lines = [
        f"layer '{layer.name}' ({layer.type}) {what}; "
        + "; ".join(
            f"{candidate.id}: {decisions.refusals[layer.name, candidate.id]}"
            for candidate in bench.order(layer.name)
            if (layer.name, candidate.id) in decisions.refusals
        )
        for layer in shown
    ]
    if len(shown) < len(lost):
        lines.append(f"and {len(lost) - len(shown)} more layers")
    return "\n".join(lines)
