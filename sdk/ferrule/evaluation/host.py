# SPDX-License-Identifier: Apache-2.0
"""The fast path: runs samples on the host, bit for bit as on a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from ferrule._typing import override
from ferrule.backends import BackendId
from ferrule.backends.cpu_acc.host.library import native_library
from ferrule.backends.registry import BackendRegistry, default_registry
from ferrule.closing import Closing
from ferrule.errors import FerruleError
from ferrule.evaluation.on_board import joined_rows
from ferrule.graph import Array
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.progress import Progress, Step
from ferrule.runtime import Runtime

EXACT = ("CpuAcc", "CpuRef")
"""The host's own backends, the fast one first; CpuRef runs the numpy kernels and supports every layer."""

_FAST = BackendId(EXACT[0])


class HostRuns(Closing):
    """A network in the host's runtime, on one thread."""

    def __init__(self, network: Network) -> None:
        """Load a network.

        Raises:
            FerruleError: the network is not valid, or the host has no compiler for CpuAcc.
        """
        self._network = network
        self._registry = exact_backends()
        self._runtime = Runtime(registry=self._registry)
        try:
            options = OptimizerOptions(model_options={EXACT[0]: {"num_threads": 1}})
            optimized = optimize(network, list(EXACT), self._runtime.registry, options)
            self._number = self._runtime.load_network(optimized)
        except BaseException:
            self.close()
            raise
        slow = [name for name, given in optimized.assignment.items() if given.backend == EXACT[1]]
        self.notes = self._why_slow({name: optimized.refusals.get((name, _FAST), "") for name in slow})
        """Why layers run on CpuRef, a line each."""
        total = len(optimized.assignment)
        self.where = f"{EXACT[0] if len(slow) < total or not total else EXACT[1]} on the host"
        """Where the samples run, for `PathPart`."""
        if 0 < len(slow) < total:
            self.where = f"{EXACT[0]} on the host, {len(slow)} of {total} layers on {EXACT[1]}"

    def _why_slow(self, refusals: Mapping[str, str]) -> tuple[str, ...]:
        missing = next((row.reason for row in self._runtime.backends if row.id == _FAST and row.reason), "")
        if missing:
            return (f"CpuRef computes all layers, since CpuAcc cannot run here: {missing}",)
        return tuple(
            f"CpuRef computes layer '{name}', since CpuAcc refuses it: {reason}" for name, reason in refusals.items()
        )

    def run(self, inputs: Sequence[Array], begins: Sequence[bool]) -> list[Array]:
        """Return the outputs of samples, joined along the first axis.

        The first axis of each input is n times its first extent. `begins` says by sample whether it begins with the
        initial state or goes on with that of the sample before; a network without state ignores it.
        """
        if not self._network.states:
            return self._runtime.enqueue_workload(self._number, list(inputs))
        results: list[list[Array]] = []
        starts = [index for index, begin in enumerate(begins) if begin or index == 0]
        for first, end in zip(starts, [*starts[1:], len(begins)], strict=True):
            if begins[first]:
                self._runtime.reset_state(self._number)
            part = [array[first * len(array) // len(begins) : end * len(array) // len(begins)] for array in inputs]
            results.append(self._runtime.enqueue_workload(self._number, part))
        return joined_rows(results)

    @override
    def close(self) -> None:
        """Unload the network."""
        self._runtime.close()
        self._registry.close()


def exact_backends() -> BackendRegistry:
    """Return a registry of `EXACT` alone: no other code is loaded, and no GPU is tried."""
    everything = default_registry()
    others = (backend for backend in everything.ids() if backend not in EXACT)
    return everything.scope(without=dict.fromkeys(others, "evaluations do not run on it"))


def compile_kernels(progress: Progress) -> None:
    """Compile the kernels of CpuAcc, as a phase of its own, unless the cache has them: it takes half a minute."""
    with suppress(FerruleError):  # then CpuRef computes, and the notes have the reason
        native_library().file(lambda: progress(Step(phase="compiling the kernels for this host, once")))
