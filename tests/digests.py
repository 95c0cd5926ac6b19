# SPDX-License-Identifier: Apache-2.0
"""Digests of generated code, one line per project or model, for changes after which every byte must be the same.

[FERRULE_MODELS=...] python tests/digests.py > before.txt      before the change, and the same after it
diff before.txt after.txt                                      names what has changed

The rows are samples of each operator, networks of composed operators, networks with devices, and the projects of the
models in FERRULE_MODELS for each platform, goal and class over the Arm Compute Library. Digests leave the version of
Ferrule out. A row that is refused has the error in place of the digest.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "support"))

import device_networks
from composed_networks import composed_network
from sample_networks import samples
from state_networks import constants, read_late, rotation, running_sum, shift_register, stream, views
from vela_networks import vela_network

import ferrule
from ferrule.codegen import Artifact
from ferrule.firmware import emit
from ferrule.network.copying import network_of

Row = tuple[str, Callable[[], str]]

BOARDS = ("mps2-an386", "mps3-an547", "stm32g0b1")
GOALS = ("speed", "balanced", "size", "memory")
PLATFORMS = ("bare-metal", "cmsis", "freertos", "threadx", "zephyr", "library", "library-cmsis")
STATES = (running_sum, stream, shift_register, rotation, views, constants, read_late)
COMPOSED, VELA = 48, 24


def digest(parts: Iterator[tuple[str, bytes]]) -> str:
    """Return the SHA-256 of named contents."""
    total = hashlib.sha256()
    for name, content in sorted(parts):
        total.update(f"{name} {len(content)}\n".encode())
        total.update(content.replace(ferrule.__version__.encode(), b"VERSION"))
    return total.hexdigest()[:16]


def of_artifact(make: Callable[[], Artifact]) -> str:
    """Return the digest of a model's generated files and tables."""
    made = make()
    return digest((name, text.encode()) for name, text in made.files.items()) + f" {made.workspace_bytes} B"


def of_folder(write: Callable[[Path], object]) -> str:
    """Return the digest of a project's files."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "project"
        write(out)
        return digest((str(path.relative_to(out)), path.read_bytes()) for path in out.rglob("*") if path.is_file())


def rows() -> Iterator[Row]:
    """Yield all rows."""
    for graph in samples():
        for board in BOARDS:
            yield f"{graph.name} {board}", partial(_artifact, partial(network_of, graph), board=board)
    for index in range(COMPOSED):
        for board, goal in zip(BOARDS, GOALS[1:], strict=True):
            name = f"composed {index} {board} {goal}"
            yield name, partial(_artifact, partial(composed_network, 1, index), board=board, goal=goal)
    for make in STATES:
        for goal in GOALS:
            yield f"{make.__name__} {goal}", partial(_artifact, make, goal=goal)
    yield "two devices", partial(of_artifact, device_networks.artifact)
    yield "two branches", partial(_artifact, device_networks.two_branches, backends=("Woofles", "CpuAcc"))
    for seed in range(VELA):
        yield f"npu {seed}", partial(_artifact, partial(vela_network, seed), backends=("EthosU", "CpuAcc"))
    for model in sorted(Path(os.environ["FERRULE_MODELS"]).glob("*.tflite")) if "FERRULE_MODELS" in os.environ else ():
        for goal in GOALS:
            for board in BOARDS[:2]:
                yield f"{model.name} {board} {goal}", partial(_project, model, board=board, goal=goal)
        for platform in PLATFORMS[1:]:
            yield f"{model.name} {platform}", partial(_project, model, platform=platform)
        for backend in ("EthosU", "Woofles", "UartWoofles"):
            yield f"{model.name} {backend}", partial(_project, model, board="mps2-an386", backends=(backend, "CpuAcc"))
        for target in ("arm-gpu-c++", "arm-cpu-c++"):
            yield f"{model.name} {target}", partial(_class, model, target)


def _artifact(make: Callable[[], ferrule.Network | None], **job: object) -> str:
    network = make()
    return "no network" if network is None else of_artifact(lambda: emit(network, ferrule.Job(**job)))  # type: ignore[arg-type]


def _project(model: Path, **job: object) -> str:
    return of_folder(lambda out: ferrule.generate(model, ferrule.Job(out=out, **job)))  # type: ignore[arg-type]


def _class(model: Path, target: str) -> str:
    return of_folder(lambda out: ferrule.generate_acl(model, target, out))


def line(index: int) -> str:
    """Return the line of a row."""
    name, compute = _ROWS[index]
    try:
        return f"{name}: {compute()}"
    except ferrule.FerruleError as error:
        return f"{name}: {' '.join(str(error).split())}"


_ROWS = list(rows())

if __name__ == "__main__":
    with ProcessPoolExecutor() as pool:
        for text in pool.map(line, range(len(_ROWS)), chunksize=4):
            sys.stdout.write(f"{text}\n")
