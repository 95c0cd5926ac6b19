# SPDX-License-Identifier: Apache-2.0
"""Compiles subgraphs with Vela; what Vela would leave to the core, or computes otherwise, goes back to the optimizer.

The rest is compiled in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ferrule.backends.ethos_u.bisection import Culprits, culprits
from ferrule.backends.ethos_u.compiled import CompiledStream, StreamTensor, read_npz
from ferrule.backends.ethos_u.model_file import ModelFile, model_file
from ferrule.backends.ethos_u.program import EthosUProgram
from ferrule.backends.ethos_u.report import read_report
from ferrule.backends.ethos_u.settings import Settings, settings_of, timeout_s
from ferrule.backends.ethos_u.trial import Verdict, needs_own_trial, verdict
from ferrule.backends.ethos_u.vela import VelaError, VelaResult, last_lines, reasons_of, run_vela
from ferrule.backends.optimization_views import (
    OptimizationViews,
    PreCompiledDescriptor,
    Substitution,
    pre_compiled,
)
from ferrule.backends.target import Target
from ferrule.errors import FerruleError
from ferrule.graph import SubgraphView, TensorInfo
from ferrule.operators.interpreter import macs_of


def compile_subgraph(view: SubgraphView, target: Target) -> OptimizationViews:
    """Return the answer for a subgraph: streams in place of its connected parts, and the layers that Vela refuses.

    Raises:
        MissingToolError: Vela is not installed.
        FerruleError: an option or the binding is wrong, or Vela takes longer than the option timeout_s allows.
    """
    settings, limit_s = settings_of(target), timeout_s(target.options)
    substitutions: list[Substitution] = []
    reasons: dict[str, str] = {}
    parts = [view]
    while parts:
        part = parts.pop(0)
        answer = compile_part(part, settings, limit_s=limit_s)
        if isinstance(answer, EthosUProgram):
            substitutions.append(_substitution(part, answer))
        else:
            reasons |= answer
            parts = [*connected_parts(part, answer), *parts]
    failed = SubgraphView.of(view.graph, reasons)
    return OptimizationViews(
        substitutions=tuple(substitutions), failed=(failed,) if failed.names else (), reasons=reasons
    )


def compile_part(part: SubgraphView, settings: Settings, *, limit_s: int) -> EthosUProgram | dict[str, str]:
    """Return the stream of a subgraph; if there is none that passes its trial, the layers to leave out, with reasons.

    At least one layer is left out then: if Vela does not compile the subgraph as a whole, those that it names, else
    those that it refuses on their own, else all; if its stream fails the trial, those to which the stream owes that.
    """
    try:
        file = model_file(part)
    except FerruleError as error:
        return dict.fromkeys(part.names, str(error))
    (result,) = run_vela([file.data], settings, timeout_s=limit_s, database=True)
    if not result.error:
        stream, found = _tried(result, file, part)
        if found.passes:
            return EthosUProgram(stream=stream, report=read_report(result, settings, file.layers))
        return dict(found.tables) or _failing(part, found.wrong, settings, limit_s)
    named = {file.owners[tensor]: reason for tensor, reason in reasons_of(result).items() if file.owners.get(tensor)}
    if named or len(part.names) == 1:
        return named or {part.names[0]: _failure(result)}
    alone = refused_alone(part, settings, limit_s=limit_s)
    return alone or dict.fromkeys(part.names, _failure(result))


def _tried(result: VelaResult, file: ModelFile, part: SubgraphView) -> tuple[CompiledStream, Verdict]:
    """Return the stream that Vela has compiled for a subgraph, and the verdict of its trial."""
    stream = _named(read_npz(result.npz), file, part)
    return stream, verdict(stream, part, file.data)


def refused_alone(view: SubgraphView, settings: Settings, *, limit_s: int) -> dict[str, str]:
    """Return the reasons against single layers of a subgraph, by name: Vela's, and those of trials of their own."""
    reasons: dict[str, str] = {}
    files: dict[str, ModelFile] = {}
    for name in view.names:
        try:
            files[name] = model_file(SubgraphView.of(view.graph, [name]))
        except FerruleError as error:
            reasons[name] = str(error)
    results = run_vela([file.data for file in files.values()], settings, timeout_s=limit_s)
    for name, result in zip(files, results, strict=True):
        if result.error:
            reasons[name] = "; ".join(reasons_of(result).values()) or _failure(result)
        elif needs_own_trial(view.graph.layer(name), view.graph):
            _, found = _tried(result, files[name], SubgraphView.of(view.graph, [name]))
            if not found.passes:
                reasons[name] = found.tables.get(name) or Culprits(names=(name,), wrong=found.wrong).reason
    return reasons


def _failing(part: SubgraphView, wrong: str, settings: Settings, limit_s: int) -> dict[str, str]:
    """Return the layers to leave out of a subgraph whose stream fails its trial, with the reason.

    Of the layers that are found, those that multiply weights stay if others are found: they are worth the most on the
    NPU, and their next stream has its own trial.
    """

    def judge(view: SubgraphView) -> str:
        try:
            file = model_file(view)
        except FerruleError:
            return ""
        (result,) = run_vela([file.data], settings, timeout_s=limit_s)
        if result.error:
            return ""
        _, found = _tried(result, file, view)
        return "; ".join(found.tables.values()) or found.wrong

    found = culprits(part, wrong, judge)
    light = [name for name in found.names if not macs_of(part.graph, [part.graph.layer(name)])]
    return dict.fromkeys(light or found.names, found.reason)


def connected_parts(view: SubgraphView, without: Iterable[str]) -> list[SubgraphView]:
    """Return the rest of a subgraph without some layers, as connected parts, each of which can run as one step.

    The subgraph itself can run as one step. A layer's level is the most of the removed layers that a path to it passes
    through; a part has layers of one level only, so that no path leaves it through a removed layer and returns.
    """
    gone = set(without)
    level: dict[str, int] = {}
    part: dict[str, set[str]] = {}
    for layer in view.layers:
        sources = [view.graph.producer(tensor) for tensor in layer.present_inputs]
        inside = [source.name for source in sources if source is not None and source.name in level]
        level[layer.name] = max((level[name] + (name in gone) for name in inside), default=0)
        if layer.name in gone:
            continue
        own = {layer.name}
        for name in inside:
            if name not in gone and level[name] == level[layer.name]:
                own |= part[name]
        for name in own:
            part[name] = own
    found = {id(own): own for own in part.values()}
    return [SubgraphView.of(view.graph, own) for own in found.values()]


def _substitution(part: SubgraphView, program: EthosUProgram) -> Substitution:
    count = len(part.names)
    descriptor = PreCompiledDescriptor(
        payload=program,
        label=f"{count} layer{'s' * (count > 1)} for {program.stream.configuration.name}",
        macs=macs_of(part.graph, part.layers),
        estimate=program.report.estimate(),
    )
    return pre_compiled(f"{part.names[-1]}/ethos_u", part, descriptor)


def _failure(result: VelaResult) -> str:
    error = " ".join(result.error.split())
    said = f": {last_lines(result.log)}" if result.log.strip() else ""
    return f"Vela does not compile it ({error}){said}"


def _named(stream: CompiledStream, file: ModelFile, part: SubgraphView) -> CompiledStream:
    """Return the stream with the tensors of the subgraph's border, in its order, with their names, types and shapes.

    States that the stream keeps in its scratch become inputs and outputs at the same places.
    """
    states = tuple({(each.region, each.offset): each for each in stream.states}.values())
    old, new = [source for source, _ in file.states], [result for _, result in file.states]
    inputs = _placed("inputs", (*stream.inputs, *states), (*file.inputs, *old))
    outputs = _placed("outputs", (*stream.outputs, *states), (*file.outputs, *new))
    return replace(
        stream,
        inputs=tuple(inputs[name] for name in part.inputs),
        outputs=tuple(outputs[name] for name in part.outputs),
        states=(),
    )


def _placed(kind: str, places: Sequence[StreamTensor], infos: Sequence[TensorInfo]) -> dict[str, StreamTensor]:
    """Return the places by the names of the tensors; VelaError if their sizes do not match."""
    sizes, expected = [place.size_bytes for place in places], [info.size_bytes for info in infos]
    if sizes != expected:
        raise VelaError(f"Vela's stream has {kind} of {sizes} bytes, expected {expected}")
    return {
        info.name: replace(place, name=info.name, shape=info.shape, dtype=info.dtype)
        for place, info in zip(places, infos, strict=True)
    }
