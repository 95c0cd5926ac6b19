# SPDX-License-Identifier: Apache-2.0
"""Random networks divided between EthosU and the core as users' are, and compared with the numpy kernels.

The campaign of `vela_campaign` shows what Vela computes otherwise; this one, that the backend uses none of it. Rows of
results are appended to a file, so that a campaign that was interrupted goes on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
from oracle import edge_inputs
from vela_networks import vela_network

from ferrule._frozen import frozen
from ferrule.backends.device import BackendId, Device
from ferrule.backends.ethos_u import trial, vela
from ferrule.backends.ethos_u.configuration import CONFIGURATIONS
from ferrule.errors import FerruleError
from ferrule.graph import Array, LayerType
from ferrule.network import Network
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends.comparison import random_inputs

NAMES = [each.name for each in CONFIGURATIONS]
_RUNS = 3
_FIRST_SEED = 1000
"""Of inputs; those of the backend's trials are others."""
_KINDS = (
    ("table", re.compile("the table that Vela compiles")),
    ("fault in the model", re.compile("the model of the NPU cannot execute")),
    ("outputs of one layer", re.compile("its stream is not used.* differ")),
    ("outputs of several layers", re.compile("a stream of .* is not used.* differ")),
    ("by name", re.compile("^(Vela 5.2|the NPU saturates)")),
)
"""The kinds of reasons against layers that Vela compiles."""


@frozen
class Row:
    """What became of one network."""

    seed: int
    configuration: str
    layers: int
    streams: int
    found: tuple[str, ...] = ()
    """The kinds of reasons against layers that Vela compiles."""
    failure: str = ""
    """What is different or went wrong; empty if the results are exact."""


class NoStore:
    """In place of `ferrule.cache.Store`: a campaign asks nothing twice, and would fill the user's cache."""

    def __init__(self, name: str) -> None:
        del name

    def get(self, name: str) -> None:
        """Have nothing."""

    def keep(self, name: str, data: bytes) -> None:
        """Keep nothing."""

    def prune(self) -> None:
        """Delete nothing."""


def divided(seed: int, configuration: str, runtime: Runtime) -> Row:
    """Divide, load and run a network and compare its results with the reference, bit for bit."""
    network = vela_network(seed)
    device = Device(name="npu0", backend=BackendId("EthosU"), binding={"configuration": configuration})
    options = OptimizerOptions(devices=(device,), simplify=seed % 4 != 0)
    try:
        optimized = optimize(network, ["EthosU", "CpuRef"], runtime.registry, options)
        number = runtime.load_network(optimized)
        failure = ""
        for inputs in _inputs(network, seed):
            expected = network.run(inputs)
            found = runtime.enqueue_workload(number, inputs)
            failure = failure or next(filter(None, map(_difference, found, expected)), "")
        runtime.unload_network(number)
    except FerruleError as error:
        return Row(
            seed=seed,
            configuration=configuration,
            layers=len(network.layers),
            streams=0,
            failure=f"{type(error).__name__}: {error}",
        )
    reasons = [reason for (_, backend), reason in optimized.refusals.items() if backend == "EthosU"]
    kinds = {kind for reason in reasons for kind, pattern in _KINDS if pattern.search(reason)}
    streams = sum(layer.type is LayerType.PRE_COMPILED for layer in optimized.graph.layers)
    return Row(
        seed=seed,
        configuration=configuration,
        layers=len(network.layers),
        streams=streams,
        found=tuple(sorted(kinds)),
        failure=failure,
    )


def _inputs(network: Network, seed: int) -> Iterator[list[Array]]:
    yield from (random_inputs(network, _FIRST_SEED + seed + index) for index in range(_RUNS))
    yield from edge_inputs(network).values()
    dice = np.random.default_rng(_FIRST_SEED + seed)
    edges = list(edge_inputs(network).values())
    yield [np.choose(dice.integers(0, len(edges), each[0].shape), each) for each in zip(*edges, strict=True)]


def _difference(found: Array, expected: Array) -> str:
    errors = np.abs(np.asarray(found).astype(np.int64) - expected.astype(np.int64))
    return f"{np.count_nonzero(errors)} of {errors.size} values differ, by up to {errors.max()}" if errors.any() else ""


def run_networks(seeds: Iterable[int], configurations: Iterable[str] = (), results: Path | None = None) -> list[Row]:
    """Return the rows of networks, each on one configuration in turn unless some are given.

    Rows that the file of results has are taken from there; the others are appended to it.
    """
    lines = results.read_text(encoding="utf-8").splitlines() if results is not None and results.exists() else []
    kept = [Row(**{**each, "found": tuple(each["found"])}) for each in map(json.loads, lines)]
    known = {(row.seed, row.configuration): row for row in kept}
    rows: list[Row] = []
    with Runtime() as runtime, patch.object(vela, "Store", NoStore), patch.object(trial, "Store", NoStore):
        for seed in seeds:
            for configuration in configurations or [NAMES[seed % len(NAMES)]]:
                row = known.get((seed, configuration)) or divided(seed, configuration, runtime)
                if results is not None and (seed, configuration) not in known:
                    with results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(row)) + "\n")
                rows.append(row)
    return rows
