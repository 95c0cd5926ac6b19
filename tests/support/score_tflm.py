# SPDX-License-Identifier: Apache-2.0
"""The scoreboard's suites of TensorFlow Lite Micro: its kernel tests, recorded, and its seanet integration tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from score_cases import Case, Run, SourceError, Suite, pinned

from ferrule import formats
from ferrule.errors import UnsupportedError
from ferrule.graph import Array
from ferrule.network import Network

COMMIT = "90b983c2b3f1480642e040bbd2ddb37b998f3424"
_SEANET = Path("tensorflow/lite/micro/integration_tests/seanet")
_SEANET_DIGEST = "219a935f30216a6ecc56ef47682a6728d6f7ed991c3643d489d4f9b1f281d0ce"
_MANIFEST = "cases.json"
_DEFINED = {
    "circular_buffer/CircularBufferTest.Reset": "CIRCULAR_BUFFER: TFLM ends a run early where Ferrule repeats outputs",
    "circular_buffer/CircularBufferTest.OutputTensorLength4": (
        "CIRCULAR_BUFFER: runs that TFLM ends early are not recorded, and the states depend on them"
    ),
    "elementwise/ElementwiseTest.RsqrtNanInt8": "RSQRT: TFLM ends with an error where Ferrule has a result",
    **dict.fromkeys(
        ("gather_nd/GatherNdTest.GatherNd_ReadOOB", "gather_nd/GatherNdTest.GatherNd_ReadOOBNegative"),
        "GATHER_ND: TFLM ends with an error where Ferrule takes the nearest index",
    ),
}
"""Cases in which a run of TFLM ends with an error, with the reason why Ferrule's does not,
or that lack such runs."""


def seanet(source: Path) -> Iterator[Case]:
    """Return the integration tests: a model of one int16 layer each, with its inputs and outputs as text.

    The tests allow a difference of 1: their outputs are LiteRT's, and TFLM's own are others in 4 models.
    """
    for model in sorted((source / _SEANET).glob("*/*.tflite")):
        yield Case(name=model.stem, make=partial(_integration_test, model), tolerance=1)


def kernels(source: Path) -> Iterator[Case]:
    """Return the recorded kernel tests: see docs/how-ferrule-is-tested.md for the format of the folder."""
    for record in _manifest(source)["cases"]:
        invalid = record.get("invalid", False) and record["name"] not in _DEFINED
        yield Case(name=record["name"], make=partial(_recorded, source, record), invalid=invalid)


def _integration_test(model: Path) -> tuple[Network, list[Run]]:
    inputs = sorted(model.parent.glob(f"{model.stem}_input*.csv"))
    (golden,) = model.parent.glob(f"{model.stem}_golden_*.csv")
    return _load(model), [Run([_numbers(path) for path in inputs], [_numbers(golden)])]


def _manifest(source: Path) -> dict[str, Any]:
    path = source / _MANIFEST
    if not path.is_file():
        raise SourceError(f"it has no file {_MANIFEST}")
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if manifest["commit"] != COMMIT:
        raise SourceError(f"it records commit {manifest['commit']}, expected {COMMIT}")
    return manifest


def _recorded(source: Path, record: dict[str, Any]) -> tuple[Network, list[Run]]:
    if reason := record.get("reason") or _DEFINED.get(record["name"]):
        raise UnsupportedError(reason)
    return _load(source / record["model"]), list(_runs(source, record))


def _runs(source: Path, record: dict[str, Any]) -> Iterator[Run]:
    with np.load(source / record["data"]) as stored:
        for run in range(record["runs"]):
            inputs, outputs = (
                [stored[f"{run}_{side}{index}"] for index in range(record[side])] for side in ("inputs", "outputs")
            )
            yield Run(inputs, outputs)


def _load(model: Path) -> Network:
    return formats.load(model.read_bytes())


def _numbers(path: Path) -> Array:
    dtype = path.stem.rpartition("_")[2]
    return np.array(path.read_text(encoding="utf-8").strip().rstrip(",").split(","), dtype=dtype)


def _seanet_version(source: Path) -> str:
    files = [path for path in (source / _SEANET).glob("*/*") if path.suffix in {".tflite", ".csv"}]
    return pinned(files, source, _SEANET_DIGEST, f"tflite-micro {COMMIT[:8]}")


def _kernels_version(source: Path) -> str:
    _manifest(source)
    return f"tflite-micro {COMMIT[:8]}"


KERNELS = Suite(
    name="kernels",
    title="TFLM's kernel tests",
    variable="FERRULE_TFLM_CASES",
    source="a folder of recorded cases (docs/how-ferrule-is-tested.md)",
    least=800,
    cases=kernels,
    version=_kernels_version,
)
SEANET = Suite(
    name="seanet",
    title="TFLM's seanet integration tests",
    variable="FERRULE_TFLM_SOURCE",
    source=f"a checkout of tensorflow/tflite-micro at commit {COMMIT}",
    least=120,
    cases=seanet,
    version=_seanet_version,
)
