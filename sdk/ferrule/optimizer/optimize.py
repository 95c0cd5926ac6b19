# SPDX-License-Identifier: Apache-2.0
"""Optimises a network: assigns each layer a backend, and on the host chooses a handle factory for each tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ferrule.backends.capability import HAS_FP16
from ferrule.backends.device import BackendId, Device
from ferrule.backends.target import Face
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.graph import Graph, GraphEditor, renamed
from ferrule.network.validation import check_layers
from ferrule.operators.table import unary_layer
from ferrule.operators.transfer import DebugDescriptor
from ferrule.optimizer.access import handle_factories
from ferrule.optimizer.assignment import RestartError, assign_layers, check_whole
from ferrule.optimizer.candidate import STRICT_HINT, BackendSource, Bench, make_bench
from ferrule.optimizer.compatibility import add_compatibility_layers
from ferrule.optimizer.conversion import remove_inverse_conversions
from ferrule.optimizer.decisions import Decisions
from ferrule.optimizer.domains import add_memory_copies
from ferrule.optimizer.optimized import OptimizedNetwork
from ferrule.optimizer.options import OptimizerOptions
from ferrule.optimizer.reduction import reduce_to_fp16
from ferrule.optimizer.simplify import simplify
from ferrule.optimizer.strategy import Selector
from ferrule.optimizer.subgraphs import optimize_subgraphs

_DEFAULTS = OptimizerOptions()


def optimize(
    network: Graph, preferences: Sequence[str], registry: BackendSource, options: OptimizerOptions = _DEFAULTS
) -> OptimizedNetwork:
    """Return the network with its layers assigned to backends; `network` is not modified.

    `preferences` lists backend ids, the most preferred first; each layer goes to the first backend that supports it.

    Raises:
        ModelError, UnsupportedError: the network is not valid, or no backend supports a layer; the message names it.
        FerruleError: the preferences, devices or hints name something that does not exist, or no backend is usable.
        InvalidViewsError: a backend rewrote its subgraph into one that does not fit into the graph.
    """
    if not network.outputs:
        raise ModelError(f"network '{network.name}' has no outputs", hint="declare them with set_outputs")
    check_layers(network, network.layers)
    if options.debug and options.face is Face.FIRMWARE:
        raise UnsupportedError("debug layers run on the host only", hint="leave debug out, or optimise for the host")
    messages: list[str] = []
    bench = make_bench(network, preferences, registry, options, messages)
    graph = _prepared(network, bench, options, messages)
    decisions = _divided(graph, bench, messages)
    if options.debug:
        _insert_debug_layers(decisions)
    if options.face is Face.HOST:
        owners = {given.backend for given in decisions.assignment.values()}  # the others may be absent when it runs
        known = handle_factories(each.backend for each in bench.candidates if each.id in owners)
        handles = Selector(decisions.graph, decisions.assignment, known, options).run()
        factories, crossings = add_compatibility_layers(decisions, handles)
    else:
        factories, crossings = {}, ()
        add_memory_copies(decisions, bench.candidates, options)
    return OptimizedNetwork(
        graph=decisions.graph,
        assignment={layer.name: decisions.assignment[layer.name] for layer in decisions.graph.layers},
        devices=tuple(_used_devices(decisions, bench, options)),
        factories=factories,
        crossings=crossings,
        messages=tuple(decisions.messages),
        notes=tuple(decisions.notes),
        refusals=decisions.refusals,
        options=options,
        replaced={
            layer.name: decisions.replaced[layer.name]
            for layer in decisions.graph.layers
            if layer.name in decisions.replaced
        },
    )


def _used_devices(decisions: Decisions, bench: Bench, options: OptimizerOptions) -> Iterator[Device]:
    """Yield the devices that have layers and, in firmware, the other members of their pools."""
    used = {(given.backend, given.device) for given in decisions.assignment.values()}
    for candidate in bench.candidates:
        own = [device for device in candidate.devices if (device.backend, device.name) in used]
        pooled = options.face is Face.FIRMWARE and any(device.pool for device in own)
        yield from (device for device in candidate.devices if device in own or (pooled and device.pool))


def _prepared(network: Graph, bench: Bench, options: OptimizerOptions, messages: list[str]) -> Graph:
    """Return the network after the passes that run before the backends are queried."""
    graph = simplify(network) if options.simplify else network
    if options.reduce_fp32_to_fp16:
        first = bench.preferred[0]
        if first.has(HAS_FP16):
            graph, kept = reduce_to_fp16(graph)
            messages += (f"layer '{name}' stays in float32: {reason}" for name, reason in kept.items())
        else:
            messages.append(f"the network stays in float32: backend {first.id} does not have the capability {HAS_FP16}")
    return graph


def _divided(graph: Graph, bench: Bench, messages: list[str]) -> Decisions:
    """Return the decisions after every layer is assigned and every backend has optimised its subgraphs.

    If an all-or-nothing backend cannot run every layer, the process restarts without it.
    """
    refusals: dict[tuple[str, BackendId], str] = {}
    while True:
        decisions = Decisions(graph=graph, messages=dict.fromkeys(messages), refusals=dict(refusals))
        try:
            assign_layers(decisions, bench, [layer.name for layer in graph.layers])
            check_whole(decisions, bench)
            decisions.replace_graph(remove_inverse_conversions(decisions.graph))
            optimize_subgraphs(decisions, bench)
            check_whole(decisions, bench)
        except RestartError as restart:
            if not bench.fallback:
                raise UnsupportedError(f"backend {restart.backend}: {restart.reason}", hint=STRICT_HINT) from None
            messages.append(f"backend {restart.backend} is left out: {restart.reason}")
            refusals |= {(layer.name, restart.backend): restart.reason for layer in graph.layers}
            bench = bench.without([restart.backend])
            if not bench.candidates:
                raise FerruleError(f"no backend is left for '{graph.name}'. {'; '.join(messages)}") from None
        else:
            return decisions


def _insert_debug_layers(decisions: Decisions) -> None:
    """Insert a DEBUG layer after every output of every layer, assigned to the backend and device of that layer.

    The DEBUG layer writes the tensor under its old name, so the readers and the graph's outputs do not change.
    """
    editor = GraphEditor(decisions.graph)
    added: dict[str, str] = {}
    for layer in decisions.graph.layers:
        raw = {name: editor.fresh(f"{name}_raw") for name in layer.outputs}
        editor.replace_layer(replace(editor.layer(layer.name), outputs=tuple(raw.values())))
        last = layer.name
        for index, (name, source) in enumerate(raw.items()):
            editor.set_tensor(renamed(editor.tensor(name), source))
            label = editor.fresh(f"debug-{index}-{layer.name}")
            descriptor = DebugDescriptor(layer=layer.name, output=index)
            editor.add_layer(unary_layer(label, descriptor, source, name), behind=last)
            added[label] = layer.name
            last = label
    decisions.replace_graph(editor.finish())
    for label, layer_name in added.items():
        decisions.assignment[label] = decisions.assignment[layer_name]
