# SPDX-License-Identifier: Apache-2.0
"""Checks that a backend's answer covers its subgraph and respects its borders."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ferrule.backends.device import BackendId
from ferrule.backends.optimization_views import InvalidViewsError, OptimizationViews, Substitution
from ferrule.graph import Graph, SubgraphView, TensorInfo


def check_views(backend: BackendId, offered: SubgraphView, views: OptimizationViews, taken: TakenNames) -> None:
    """Check a backend's answer; `taken` holds the names in the same graph and in the earlier answers.

    Raises:
        InvalidViewsError: a layer is in no list or in several, a deleted part changes shape or type, a replacement
            reads or writes a tensor that it must not, or a name is taken. The message names the backend and the layer.
    """
    _check_cover(backend, offered, views)
    for view in views.deleted:
        _check_deleted(backend, view)
    for substitution in views.substitutions:
        _check_borders(backend, substitution)
        taken.claim(backend, substitution)


def _check_cover(backend: BackendId, offered: SubgraphView, views: OptimizationViews) -> None:
    lists = {
        "substitutions": tuple(substitution.replaced for substitution in views.substitutions),
        "failed": views.failed,
        "untouched": views.untouched,
        "deleted": views.deleted,
    }
    count: Counter[str] = Counter()
    for title, parts in lists.items():
        for part in parts:
            if part.graph is not offered.graph:
                raise InvalidViewsError(
                    f"backend {backend} returned a view of another graph in {title}: {list(part.names)}"
                )
            if not part.names:
                raise InvalidViewsError(f"backend {backend} returned a view without layers in {title}")
            count.update(part.names)
    names = set(offered.names)
    for name in count:
        if name not in names:
            raise InvalidViewsError(f"backend {backend} returned layer '{name}', which it was not offered")
    for name in offered.names:
        if count[name] != 1:
            where = "in none of its lists" if not count[name] else f"{count[name]} times"
            raise InvalidViewsError(f"backend {backend} returned layer '{name}' {where}, expected it once")


def _check_deleted(backend: BackendId, view: SubgraphView) -> None:
    where = f"backend {backend} deletes layer '{view.names[0]}'"
    if len(view.names) > 1:
        where = f"backend {backend} deletes layers {list(view.names)}"
    if len(view.inputs) != 1 or len(view.outputs) != 1:
        raise InvalidViewsError(
            f"{where} with inputs {list(view.inputs)} and outputs {list(view.outputs)}, expected one of each"
        )
    source, output = view.info(view.inputs[0]), view.info(view.outputs[0])
    if replace(source, name=output.name) != output:
        raise InvalidViewsError(
            f"{where}, whose input {_described(source)} and output {_described(output)} differ, "
            "expected the same shape, type and quantisation"
        )


def _check_borders(backend: BackendId, substitution: Substitution) -> None:
    view = substitution.replaced
    if not substitution.layers:
        raise InvalidViewsError(
            f"backend {backend} replaces layer '{view.names[0]}' by nothing, expected layers (or it in `deleted`)"
        )
    own = {info.name: info for info in substitution.tensors}
    described = set(own) | {name for layer in view.layers for name in layer.outputs}
    constants = {constant.info.name for constant in substitution.constants}
    readable = set(view.inputs) | constants
    written: set[str] = set()
    for layer in substitution.layers:
        where = f"backend {backend}, replacement layer '{layer.name}'"
        for name in layer.present_inputs:
            if name not in readable and not _is_constant(view.graph, name):
                raise InvalidViewsError(
                    f"{where} reads tensor '{name}', expected an input of the replaced layers {list(view.inputs)}, "
                    "a constant, or an output of a layer before it"
                )
        for name in layer.outputs:
            if name in written:
                raise InvalidViewsError(f"{where} writes tensor '{name}', which is written already")
            if name not in described:
                raise InvalidViewsError(f"{where} writes tensor '{name}', which the substitution does not describe")
            written.add(name)
        readable |= set(layer.outputs)
    for name in view.outputs:
        if name not in written:
            raise InvalidViewsError(
                f"backend {backend} replaces layers {list(view.names)} and writes no '{name}', which others read"
            )
    for name, info in own.items():
        if name not in written:
            raise InvalidViewsError(f"backend {backend} describes tensor '{name}', which no replacement layer writes")
        if name in view.outputs and info != view.info(name):
            raise InvalidViewsError(
                f"backend {backend} changes tensor '{name}' from {_described(view.info(name))} to {_described(info)}, "
                "expected it unchanged, since others read it"
            )


def _is_constant(graph: Graph, tensor: str) -> bool:
    return graph.has_tensor(tensor) and graph.tensor(tensor).is_constant


class TakenNames:
    """The names already in use, which replacement layers and their tensors must not take."""

    def __init__(self, graph: Graph) -> None:
        self._layers = {layer.name for layer in graph.layers}
        self._tensors = {tensor.info.name for tensor in graph.tensors}

    def claim(self, backend: BackendId, substitution: Substitution) -> None:
        """Register the names of one substitution; InvalidViewsError if one is already in use."""
        own = substitution.replaced.layers
        self._layers -= {layer.name for layer in own}
        self._tensors -= {name for layer in own for name in layer.outputs}
        for layer in substitution.layers:
            _claim(self._layers, layer.name, f"backend {backend} adds layer '{layer.name}'")
            for name in layer.outputs:
                _claim(self._tensors, name, f"backend {backend} adds tensor '{name}' of layer '{layer.name}'")
        for constant in substitution.constants:
            name = constant.info.name
            if not constant.is_constant:
                raise InvalidViewsError(f"backend {backend} adds a constant '{name}' without data")
            _claim(self._tensors, name, f"backend {backend} adds constant '{name}'")


def _claim(names: set[str], name: str, what: str) -> None:
    if not name or name in names:
        raise InvalidViewsError(f"{what}, a name that is taken, expected a new one")
    names.add(name)


def _described(info: TensorInfo) -> str:
    return f"'{info.name}' {info.dtype}{list(info.shape)} with quantisation {info.quantization}"
