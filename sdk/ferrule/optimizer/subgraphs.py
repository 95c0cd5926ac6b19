# SPDX-License-Identifier: Apache-2.0
"""Lets each backend optimise its subgraphs and reassigns the layers that a backend fails on."""

from __future__ import annotations

from collections.abc import Sequence

from ferrule.backends.device import Device
from ferrule.backends.optimization_views import OptimizationViews
from ferrule.errors import place
from ferrule.graph import SubgraphView
from ferrule.optimizer.assignment import RestartError, assign_layers
from ferrule.optimizer.candidate import Bench, Candidate
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.division import divide_answers
from ferrule.optimizer.optimized import Assignment
from ferrule.optimizer.partition import extract_subgraphs
from ferrule.optimizer.policy import apply_policy
from ferrule.optimizer.substitution import Answer, apply_answers
from ferrule.optimizer.views import TakenNames, check_views


def optimize_subgraphs(decisions: Decisions, bench: Bench) -> None:
    """Let every backend optimise the subgraphs of each of its devices, in order of preference.

    Only the layers that a backend fails on go to the next backend that supports them, which may optimise them in turn.
    The loop ends because a layer never returns to a backend that failed on it, and a replacement layer stays
    with its backend. A subgraph that the backend's policy refuses goes to the next backends.

    Raises:
        InvalidViewsError: a backend's answer does not cover its subgraph or does not fit into the graph.
        UnsupportedError: no backend is left for a layer.
        RestartError: an all-or-nothing backend failed on a layer.
    """
    while set(decisions.assignment) - decisions.settled:
        for candidate in bench.candidates:
            for device in candidate.devices:
                apply_policy(decisions, bench, candidate, device)
                _optimize_on_device(decisions, bench, candidate, device)


def _optimize_on_device(decisions: Decisions, bench: Bench, candidate: Candidate, device: Device) -> None:
    chosen = {*decisions.layers_on(device)} - decisions.settled
    if not chosen:
        return
    graph, taken = decisions.graph, TakenNames(decisions.graph)

    def ask(subgraph: SubgraphView) -> Answer:
        with place(f"backend {candidate.id}, optimising layers {list(subgraph.names)}"):
            views = candidate.backend.optimize_subgraph(subgraph, candidate.options.target(device))
        return Answer(backend=candidate.id, subgraph=subgraph, views=views)

    answers = [ask(subgraph) for subgraph in extract_subgraphs(graph, chosen)]
    answers = divide_answers(decisions, bench, candidate, device, answers, ask)
    for answer in answers:
        check_views(candidate.id, answer.subgraph, answer.views, taken)
    rewritten = apply_answers(graph, answers)
    decisions.replace_graph(rewritten.graph)
    added = {
        layer.name: substitution.replaced.names
        for answer in answers
        for substitution in answer.views.substitutions
        for layer in substitution.layers
    }
    decisions.replaced |= added
    decisions.assignment |= dict.fromkeys(added, Assignment.of(device))
    decisions.settled |= {*chosen, *added} & set(decisions.assignment)
    for name in rewritten.kept:
        decisions.warn(f"layer '{name}' stays, though {candidate.id} deletes it: it writes an output of the network")
    _reassign_failed(decisions, bench, candidate, [answer.views for answer in answers])


def _reassign_failed(
    decisions: Decisions, bench: Bench, candidate: Candidate, answers: Sequence[OptimizationViews]
) -> None:
    failed: list[str] = []
    for number, views in enumerate(answers):
        for view in views.failed:
            failed += view.names
            decisions.warn(f"Re-assigning backends to {len(view.names)} layers inside sub-graph {number}")
            for name in view.names:
                reason = views.reasons.get(name, "no reason given")
                decisions.refusals[name, candidate.id] = f"it failed to optimise the layer: {reason}"
                decisions.failed.setdefault(name, set()).add(candidate.id)
    if not failed:
        return
    decisions.warn(f"Some sub-graph(s) failed to optimized on {candidate.id} backend.")
    if candidate.all_or_nothing:
        raise RestartError(
            candidate.id,
            f"it takes whole networks only, and failed on layer '{failed[0]}': "
            f"{decisions.refusals[failed[0], candidate.id]}",
        )
    decisions.settled -= set(failed)
    wanted = set(failed)
    assign_layers(decisions, bench, [layer.name for layer in decisions.graph.layers if layer.name in wanted])
