# SPDX-License-Identifier: Apache-2.0
"""The optimisation of a subgraph by a dynamic backend."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

from ferrule.backends.dynamic import abi
from ferrule.backends.dynamic.library import DynamicLibraryError, Tables
from ferrule.backends.dynamic.records import options_array, subgraph_struct, target_struct
from ferrule.backends.optimization_views import (
    OptimizationViews,
    PreCompiledDescriptor,
    Substitution,
    pre_compiled,
)
from ferrule.backends.target import Target
from ferrule.graph import SubgraphView


def ask_optimizer(tables: Tables, view: SubgraphView, target: Target) -> OptimizationViews:
    """Return the backend's views of one subgraph.

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
    return answers.views()


class _Answers:
    """Collects the backend's answers; wraps a struct ferrule_optimizer_answers."""

    def __init__(self, view: SubgraphView) -> None:
        self.problem = ""
        """The first error in an answer; "" if there is none."""
        self._view = view
        self._open = dict.fromkeys(view.names)
        self._failed: dict[str, str] = {}
        self._erased: list[str] = []
        self._substitutions: list[Substitution] = []
        methods = (self._fail, self._erase, self._pre_compile)
        rows = abi.OptimizerAnswers.functions.values()
        self.struct = abi.OptimizerAnswers(None, *(row.ctype(each) for row, each in zip(rows, methods, strict=True)))

    def views(self) -> OptimizationViews:
        """Return all answers; the other layers stay untouched."""
        return OptimizationViews(
            substitutions=tuple(self._substitutions),
            failed=tuple(self._part([name]) for name in self._failed),
            untouched=(self._part(self._open),) if self._open else (),
            deleted=tuple(self._part([name]) for name in self._erased),
            reasons=self._failed,
        )

    def _part(self, names: Iterable[str]) -> SubgraphView:
        return SubgraphView.of(self._view.graph, names)

    def _take(self, indices: Sequence[int]) -> list[str] | None:
        """Return the layers with these indices; record a problem and return None if one is invalid or repeated."""
        names = []
        for index in indices:
            name = self._view.names[index] if index < len(self._view.names) else None
            if name is None or name not in self._open:
                self.problem = self.problem or (
                    f"it names layer {index} of {len(self._view.names)}"
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
        self._failed[names[0]] = (reason or b"").decode(errors="replace")
        return abi.OK

    def _erase(self, host: int | None, index: int) -> int:
        del host
        names = self._take([index])
        if names is None:
            return abi.ERR_ARGUMENT
        self._erased += names
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
        graph = self._view.graph
        self._substitutions.append(
            pre_compiled(
                graph.unique_name(f"{names[0]}_compiled"),
                self._part(names),
                PreCompiledDescriptor(payload=payload, label=text, macs=macs),
            )
        )
        return abi.OK
