# SPDX-License-Identifier: Apache-2.0
"""Leaves subgraphs that are not worth their transfer to a device to the next backends, by the backends' policies."""

from __future__ import annotations

from ferrule.backends.backend import Policy
from ferrule.backends.device import Device
from ferrule.graph import SubgraphView
from ferrule.optimizer.assignment import assign_layers
from ferrule.optimizer.candidate import Bench, Candidate
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.effort import macs
from ferrule.optimizer.partition import extract_subgraphs

_EVERYTHING = Policy()


def apply_policy(decisions: Decisions, bench: Bench, candidate: Candidate, device: Device) -> None:
    """Assign the layers of a device's subgraphs that its backend's policy refuses to the next backends.

    A subgraph stays if a hint names the backend for one of its layers, if one of its layers was already optimised, or
    if no other backend supports one of its layers; so do all of a backend that runs whole networks only, and all
    without fallback.
    """
    if not bench.fallback or candidate.all_or_nothing:
        return
    policy = candidate.backend.policy(candidate.options.target(device))
    if policy == _EVERYTHING:
        return
    hinted = {name for name, hint in bench.hints.items() if hint.candidate.id == candidate.id}
    left: list[str] = []
    for view in extract_subgraphs(decisions.graph, frozenset(decisions.layers_on(device))):
        if any(name in decisions.settled or name in hinted for name in view.names):
            continue
        reason = too_small(view, policy)
        if not reason:
            continue
        bound = next((name for name in view.names if not _has_another(decisions, bench, name, candidate)), None)
        if bound is not None:
            decisions.warn(
                f"{_named(view)} kept on {candidate.id}, though {reason}: no other backend supports '{bound}'"
            )
            continue
        decisions.warn(f"{_named(view)} left by {candidate.id} to the next backend: {reason}")
        for name in view.names:
            decisions.refusals[name, candidate.id] = f"its policy: {reason}"
            decisions.failed.setdefault(name, set()).add(candidate.id)
        left += view.names
    if left:
        assign_layers(decisions, bench, left)


def too_small(view: SubgraphView, policy: Policy) -> str:
    """Return the reason why a subgraph is not worth its transfer; "" if it is."""
    layers, work = len(view.names), sum(macs(view.graph, layer) for layer in view.layers)
    moved = sum(view.info(name).size_bytes for name in (*view.inputs, *view.outputs))
    if layers < policy.least_layers:
        return f"its subgraph has {layers:,} layer{'s' * (layers > 1)}, fewer than {policy.least_layers:,}"
    if work < policy.least_macs:
        return f"its subgraph has {work:,} MACs, fewer than {policy.least_macs:,}"
    if work < policy.macs_per_byte * moved:
        return (
            f"its subgraph has {work:,} MACs and moves {moved:,} B, fewer than {policy.macs_per_byte:g} MACs per byte"
        )
    return ""


def _has_another(decisions: Decisions, bench: Bench, name: str, candidate: Candidate) -> bool:
    """Return whether a candidate other than the given one supports a layer and has not failed on it."""
    layer, gone = decisions.graph.layer(name), decisions.failed.get(name, ())
    return any(
        not other.refusal(decisions.graph, layer, bench.device(name, other))
        for other in bench.order(name)
        if other.id != candidate.id and other.id not in gone
    )


def _named(view: SubgraphView) -> str:
    first, *others = view.names
    return f"layer '{first}' is" if not others else f"layer '{first}' and {len(others)} more are"
