# SPDX-License-Identifier: Apache-2.0
"""The scoreboard's suite of MLPerf Tiny: its runner, unchanged, drives generated firmware on an emulated board."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import mlperf_bench
from score_cases import Case, SourceError, Suite, pinned

import ferrule
from ferrule.firmware.mlperf_tiny import BENCHMARKS

COMMIT = "1afd2c9820f795965a6134facd0b4dfae41ef23f"
_DIGEST = "56f08f78701422dd65c5115dc5f720cf9d3084ac0a86b2d7a886574544fab457"
_RUNNER = "benchmark/runner"
_BOARD, _ENGINE = "mps2-an386", "unicorn"
_SAMPLES = 6
_DATA_FILES = 5
"""As many as the runner's script for performance loads."""
_MEDIAN = re.compile(r"Median throughput is +([0-9.]+) inf")


def cases(source: Path) -> Iterator[Case]:
    """Return a case per benchmark for our runner and for the official one, and one for its mode of accuracy."""
    for name in BENCHMARKS:
        yield Case(name=f"{name}: results equal numpy's", check=partial(_results, source, name))
        yield Case(name=f"{name}: the official runner measures", check=partial(_performance, source, name))
    yield Case(name="ad01: the official runner's accuracy", check=partial(_accuracy, source, "ad01"))


def _model(source: Path, name: str) -> Path:
    """Return a model of FERRULE_MODELS or, without it, of the checkout."""
    file = mlperf_bench.MODELS[name]
    folder = os.environ.get("FERRULE_MODELS")
    if folder:
        return Path(folder) / file
    found = sorted((source / "benchmark" / "training").rglob(f"trained_models/{file}"))
    if not found:
        raise SourceError(f"it has no {file}; set FERRULE_MODELS to the folder with MLPerf Tiny's models")
    return found[0]


def _results(source: Path, name: str) -> str:
    model = _model(source, name)
    network, benchmark = ferrule.load(model), BENCHMARKS[name]
    with tempfile.TemporaryDirectory() as folder:
        elf = mlperf_bench.firmware(name, model, Path(folder) / "project", _BOARD)
        with mlperf_bench.device(elf, _BOARD, _ENGINE) as (_, runner):
            for index, sample in enumerate(mlperf_bench.random_samples(name, network, _SAMPLES)):
                runner.load(sample.data)
                found = runner.infer(1).results
                wanted = mlperf_bench.expected(benchmark, network, sample.data)
                if not mlperf_bench.equal(found, wanted):
                    return f"sample {index}: the results are {found}, numpy's {wanted}"
    return ""


def _performance(source: Path, name: str) -> str:
    model = _model(source, name)
    samples = mlperf_bench.random_samples(name, ferrule.load(model), _DATA_FILES)
    text = _official(source, name, model, samples, "p")
    if "ERROR 1" in text:
        return "the runner has not run five windows"
    # ERROR 2 says that the host, not the board, was faster than 10 s: an emulator may be
    return "" if "Throughput:" in text and (_MEDIAN.search(text) or "ERROR 2" in text) else text[-300:]


def _accuracy(source: Path, name: str) -> str:
    model = _model(source, name)
    network = ferrule.load(model)
    samples = mlperf_bench.by_error(BENCHMARKS[name], network, mlperf_bench.random_samples(name, network, _SAMPLES))
    text = _official(source, name, model, samples, "a")
    return "" if "AUC = 1.000" in text else text[-300:]


def _official(source: Path, name: str, model: Path, samples: list[mlperf_bench.Sample], mode: str) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        elf = mlperf_bench.firmware(name, model, folder / "project", _BOARD)
        mlperf_bench.write_data(folder / "data", name, samples)
        (folder / "logs").mkdir()
        python = os.environ.get("FERRULE_MLPERF_PYTHON")
        with mlperf_bench.at_a_port(elf, _BOARD, _ENGINE) as port:
            return mlperf_bench.official_runner(source, port, mode, folder / "data", folder / "logs", python)


def _version(source: Path) -> str:
    if not (source / _RUNNER).is_dir():
        raise SourceError(f"it has no folder {_RUNNER}")
    return pinned((source / _RUNNER).rglob("*.py"), source, _DIGEST, f"mlcommons/tiny {COMMIT[:8]}")


MLPERF_TINY = Suite(
    name="mlperf-tiny",
    title="MLPerf Tiny's runner",
    variable=mlperf_bench.CHECKOUT,
    source=f"a checkout of mlcommons/tiny at commit {COMMIT}",
    least=2 * len(BENCHMARKS) + 1,
    cases=cases,
    version=_version,
)
