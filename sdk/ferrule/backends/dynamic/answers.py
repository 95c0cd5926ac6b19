# SPDX-License-Identifier: Apache-2.0
"""The optimisation of a subgraph by a dynamic backend."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import msgspec

from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.library import DynamicLibraryError, Tables
from ferrule.backends.dynamic.records import options_array, subgraph_struct, target_struct
from ferrule.backends.optimization_views import (
    OptimizationViews,
    PreCompiledDescriptor,
    pre_compiled,
)
from ferrule.backends.target import Target
from ferrule.graph import SubgraphView


class CompiledPart(msgspec.Struct, frozen=True, kw_only=True):
    """Layers that one pre-compiled object replaces, by name."""

    layers: tuple[str, ...]
    label: str
    macs: int
    payload: bytes


class OptimizedPart(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a subgraph, by the names of its layers; the others stay untouched."""

    failed: dict[str, str] = {}
    """The reasons, by layer."""
    deleted: tuple[str, ...] = ()
    compiled: tuple[CompiledPart, ...] = ()

    def views(self, view: SubgraphView) -> OptimizationViews:
        """Return the answer as views of the subgraph; the optimizer checks that they cover it."""
        taken = {*self.failed, *self.deleted, *(name for part in self.compiled for name in part.layers)}
        left = [name for name in view.names if name not in taken]

        def part(names: Sequence[str]) -> SubgraphView:
            return SubgraphView.of(view.graph, names)

        return OptimizationViews(
            substitutions=tuple(
                pre_compiled(
                    view.graph.unique_name(f"{each.layers[0]}_compiled"),
                    part(each.layers),
                    PreCompiledDescriptor(payload=each.payload, label=each.label, macs=each.macs),
                )
                for each in self.compiled
            ),
            failed=tuple(part([name]) for name in self.failed),
            untouched=(part(left),) if left else (),
            deleted=tuple(part([name]) for name in self.deleted),
            reasons=self.failed,
        )


def ask_optimizer(tables: Tables, view: SubgraphView, target: Target) -> OptimizedPart:
    """Return the backend's answer to one subgraph.

    Raises:
        DynamicLibraryError: the backend failed, or passed a layer twice or an invalid index.
    """
    subgraph, answers, table = subgraph_struct(view), _Answers(view), tables.optimizer
    if table.optimize_on:
        _, reason = table.optimize_on(tables.address, target_struct(target), subgraph, answers.struct)
    else:
        options = options_array(target.options)
        _, reason = table.optimize(tables.address, subgraph, options, len(options), answers.struct)
    problem = reason or answers.problem
    if problem:
        raise DynamicLibraryError(f"backend '{tables.library.id}' cannot optimise its layers: {problem}")
    return OptimizedPart(failed=answers.failed, deleted=tuple(answers.erased), compiled=tuple(answers.compiled))


class _Answers:
    """Collects the backend's answers; wraps a struct ferrule_optimizer_answers."""

    def __init__(self, view: SubgraphView) -> None:
        self.problem = ""
        """The first error in an answer; "" if there is none."""
        self._names = view.names
        self._open = dict.fromkeys(view.names)
        self.failed: dict[str, str] = {}
        self.erased: list[str] = []
        self.compiled: list[CompiledPart] = []
        callbacks = abi.calling(abi.OptimizerAnswers, self._fail, self._erase, self._pre_compile)
        self.struct = abi.OptimizerAnswers(None, *callbacks)

    def _take(self, indices: Sequence[int]) -> list[str] | None:
        """Return the layers with these indices; record a problem and return None if one is invalid or repeated."""
        names = []
        for index in indices:
            name = self._names[index] if index < len(self._names) else None
            if name is None or name not in self._open:
                self.problem = self.problem or (
                    f"it names layer {index} of {len(self._names)}"
                    if name is None
                    else f"it names layer '{name}' twice"
                )
                return None
            del self._open[name]
            names.append(name)
        return names

    def _fail(self, host: int | None, index: int, reason: bytes | None) -> int:
        del host
        names = self._take([index])
        if names is None:
            return abi.ERR_ARGUMENT
        self.failed[names[0]] = (reason or b"").decode(errors="replace")
        return abi.OK

    def _erase(self, host: int | None, index: int) -> int:
        del host
        names = self._take([index])
        if names is None:
            return abi.ERR_ARGUMENT
        self.erased += names
        return abi.OK

    def _pre_compile(
        self,
        host: int | None,
        indices: Sequence[int],
        count: int,
        label: bytes | None,
        macs: int,
        blob: int | None,
        size: int,
    ) -> int:
        del host
        names = self._take(indices[:count]) if count else None
        if names is None or (size and not blob):
            self.problem = self.problem or "it pre-compiles nothing"
            return abi.ERR_ARGUMENT
        text = (label or b"").decode(errors="replace") or "pre-compiled"
        payload = ctypes.string_at(blob, size) if blob else b""
        self.compiled.append(CompiledPart(layers=tuple(names), label=text, macs=macs, payload=payload))
        return abi.OK
