# SPDX-License-Identifier: Apache-2.0
"""Optimises subgraphs: additions become programs."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from ferrule.backends import (
    OptimizationViews,
    PreCompiledDescriptor,
    Substitution,
    pre_compiled,
)
from ferrule.errors import UnsupportedError
from ferrule.graph import SubgraphView
from my_custom.program import check_size, compile_program


def optimize(view: SubgraphView) -> OptimizationViews:
    """Sort the layers of a subgraph into three lists.

    - failed: additions of tensors with more elements than the device can count; another backend gets them
    - untouched: additions of a constant, and additions without readers; each has its own workload
    - substitutions: all other additions, one program for each connected part
    """
    reasons = {name: reason for name in view.names if (reason := _obstacle(view, name))}
    plain = [name for name in view.names if name not in reasons and _reads_constant(view, name)]
    runs = tuple(_runs(view, without={*reasons, *plain}))
    return OptimizationViews(
        substitutions=tuple(_program(run) for run in runs if run.outputs),
        failed=tuple(SubgraphView.of(view.graph, [name]) for name in reasons),
        untouched=(
            *(SubgraphView.of(view.graph, [name]) for name in plain),
            *(run for run in runs if not run.outputs),
        ),
        reasons=reasons,
    )


def _obstacle(view: SubgraphView, name: str) -> str:
    try:
        check_size(view.info(view.graph.layer(name).outputs[0]))
    except UnsupportedError as error:
        return str(error)
    return ""


def _reads_constant(view: SubgraphView, name: str) -> bool:
    return any(view.graph.tensor(source).is_constant for source in view.graph.layer(name).present_inputs)


def _program(part: SubgraphView) -> Substitution:
    program = compile_program(part)
    label = f"{len(part.names)} additions" if len(part.names) > 1 else "1 addition"
    return pre_compiled(f"{part.names[-1]}/program", part, PreCompiledDescriptor(payload=program, label=label))


def _runs(view: SubgraphView, without: AbstractSet[str]) -> Iterator[SubgraphView]:
    """Yield runs of neighbours in the subgraph's order; each layer reads an output of an earlier layer in its run.

    Any other layer in between ends a run: it may read an output of the run and write an input of the next layers. A
    program of both would wait for its own output, which the optimizer refuses.
    """
    run: list[str] = []
    written: set[str] = set()
    for layer in view.layers:
        if run and (layer.name in without or not written & set(layer.present_inputs)):
            yield SubgraphView.of(view.graph, run)
            run, written = [], set()
        if layer.name not in without:
            run.append(layer.name)
            written |= set(layer.outputs)
    if run:
        yield SubgraphView.of(view.graph, run)
