# SPDX-License-Identifier: Apache-2.0
"""Offers each backend its subgraphs to rewrite, and what it could not do to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ferrule.backends.contract import asking
from ferrule.backends.optimization_views import ModelOptions, OptimizationViews
from ferrule.errors import place
from ferrule.optimizer.assignment import RestartError, assign_layers
from ferrule.optimizer.candidate import Bench, Candidate
from ferrule.optimizer.draft import Draft
from ferrule.optimizer.optimized import Assignment
from ferrule.optimizer.partition import extract_subgraphs
from ferrule.optimizer.substitution import Answer, apply_answers
from ferrule.optimizer.views import TakenNames, check_views


def offer_subgraphs(draft: Draft, bench: Bench, model_options: Mapping[str, ModelOptions]) -> None:
    """Let every backend optimise the subgraphs of each of its devices, in the order of the preferences.

    Layers that a backend fails on, and only those, go to the next backend that takes them, which has its own chance
    to optimise them. This ends, since a layer is never given to a backend that failed on it, and what a backend put
    in is not offered again.

    Raises:
        InvalidViewsError: a backend returned something that does not cover its subgraph or fit into the graph.
        UnsupportedError: no backend is left for a layer.
        RestartError: a backend of all or nothing failed.
    """
    while set(draft.assignment) - draft.settled:
        for candidate in bench.candidates:
            for device in candidate.devices:
                _offer_device(draft, bench, candidate, device.name, model_options.get(candidate.id, {}))


def _offer_device(draft: Draft, bench: Bench, candidate: Candidate, device: str, options: ModelOptions) -> None:
    owner = Assignment(backend=candidate.id, device=device)
    chosen = {name for name, given in draft.assignment.items() if given == owner} - draft.settled
    if not chosen:
        return
    graph, taken = draft.graph, TakenNames(draft.graph)
    answers = []
    for offered in extract_subgraphs(graph, chosen):
        where = place(f"backend {candidate.id}, optimising layers {list(offered.names)}")
        with where, asking(candidate.id, "optimize_subgraph()"):
            views = candidate.backend.optimize_subgraph(offered, options)
        check_views(candidate.id, offered, views, taken)
        answers.append(Answer(backend=candidate.id, offered=offered, views=views))
    rewritten = apply_answers(graph, answers)
    draft.replace_graph(rewritten.graph)
    added = {
        layer.name: substitution.replaced.names
        for answer in answers
        for substitution in answer.views.substitutions
        for layer in substitution.layers
    }
    draft.replaced |= added
    draft.assignment |= dict.fromkeys(added, owner)
    draft.settled |= {*chosen, *added} & set(draft.assignment)
    for name in rewritten.kept:
        draft.warn(f"layer '{name}' stays, though {candidate.id} deletes it: it writes an output of the network")
    _reassign_failed(draft, bench, candidate, [answer.views for answer in answers])


def _reassign_failed(draft: Draft, bench: Bench, candidate: Candidate, answers: Sequence[OptimizationViews]) -> None:
    failed: list[str] = []
    for number, views in enumerate(answers):
        for view in views.failed:
            failed += view.names
            draft.warn(f"Re-assigning backends to {len(view.names)} layers inside sub-graph {number}")
            for name in view.names:
                reason = views.reasons.get(name, "no reason given")
                draft.refusals[name, candidate.id] = f"it failed to optimise the layer: {reason}"
                draft.failed.setdefault(name, set()).add(candidate.id)
    if not failed:
        return
    draft.warn(f"Some sub-graph(s) failed to optimized on {candidate.id} backend.")
    if candidate.all_or_nothing:
        raise RestartError(
            candidate.id,
            f"it takes whole networks only, and failed on layer '{failed[0]}': "
            f"{draft.refusals[failed[0], candidate.id]}",
        )
    draft.settled -= set(failed)
    wanted = set(failed)
    assign_layers(draft, bench, [layer.name for layer in draft.graph.layers if layer.name in wanted])
