# SPDX-License-Identifier: Apache-2.0
"""Fuzz targets: damaged models through the optimizer, the planner and the emitter, and built under the sanitizers."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from children import ran
from ckernels import ADDRESS, WARNINGS
from fuzzing import Check, Target, refused
from mutation import mutate_values
from needs import require_cc, require_sanitizers
from sample_networks import valid_samples

from ferrule import resources
from ferrule.boards import Board, board_names, load_board
from ferrule.codegen import Artifact
from ferrule.codegen.plan import REGION
from ferrule.errors import FerruleError
from ferrule.firmware import Job, emit
from ferrule.formats import load, to_tflite
from ferrule.graph import Array, DataType, Graph, TensorInfo
from ferrule.network import Network
from ferrule.network.bounds import run_bounded
from ferrule.operators.arithmetic.running_error import Bounded
from ferrule.report import Verdict, compare
from ferrule.testing.backends.comparison import random_inputs
from ferrule.testing.backends.layer_cases import LAYER_TYPES, layer_case

MAX_ELEMENTS, MAX_MACS = 300_000, 3_000_000
"""Networks beyond these take more time to run than to plan; the builds leave them out."""
_BACKENDS = (*[("CpuAcc",)] * 5, ("SoftNpu", "CpuAcc"), ("Woofles", "CpuAcc"), ("UartWoofles", "CpuAcc"))
_FLAGS = ("-std=c11", "-O0", "-g", "-ffp-contract=off", *ADDRESS)


@cache
def _grown_from() -> dict[DataType, list[Graph]]:
    """Return the sample networks by the type of their first input."""
    found: dict[DataType, list[Graph]] = {}
    for graph in valid_samples():
        found.setdefault(graph.inputs[0].dtype, []).append(graph)
    return found


def _key(info: TensorInfo) -> object:
    return info.shape, info.dtype, info.quantization


def grown(choice: random.Random) -> Network:
    """Return a network of up to ten of the sample layers, each of which reads inputs or the results of others."""
    parts = _grown_from()[choice.choice((DataType.INT8, DataType.INT8, DataType.INT16))]
    network = Network("fuzz")
    first = choice.choice(parts).inputs[0]
    pool = [network.add_input(replace(first, name="x"))]
    unread = set(pool)
    for number in range(choice.choice((2, 2, 3, 3, 4, 5, 10))):
        graph = choice.choice(parts)
        layer = graph.layers[0]
        names: list[str | None] = []
        for name in layer.inputs:
            data = None if name is None else graph.tensor(name).data
            if name is None or data is not None:
                names.append(None if name is None else f"c{number}_{name}")
                continue
            fitting = [each for each in pool if _key(network.info(each)) == _key(graph.info(name))]
            if not fitting:
                fitting = [network.add_input(replace(graph.info(name), name=f"x{number}_{name}"))]
                pool += fitting
            names.append(choice.choice(fitting[-6:]))
        for name in layer.present_inputs:
            tensor = graph.tensor(name)
            if tensor.data is not None:
                network.add_constant(replace(tensor.info, name=f"c{number}_{name}"), tensor.data)
        infos = [replace(info, name=f"t{number}_{index}") for index, info in enumerate(graph.output_infos(layer))]
        outputs = tuple(info.name for info in infos)
        network.add_layer(replace(layer, name=f"l{number}", inputs=tuple(names), outputs=outputs), infos)
        unread = (unread - {name for name in names if name is not None}) | set(outputs)
        pool += outputs
    results = sorted(unread) + [name for name in pool if choice.random() < 0.1]
    choice.shuffle(results)
    network.set_outputs(results if choice.random() < 0.9 else results[:1])
    return network


def model(choice: random.Random) -> bytes:
    """Return a file with a random network, of which some numbers may be changed."""
    graph: Graph | None = None
    while graph is None:
        if choice.random() < 0.3:
            graph = grown(choice)
            break
        types = (DataType.INT8, DataType.INT8, DataType.INT16, DataType.FLOAT32, DataType.INT32, DataType.INT64)
        try:
            graph = layer_case(choice.choice(LAYER_TYPES), choice.choice(types), choice.randrange(10**6))
            data = to_tflite(graph)
        except FerruleError:
            graph = None
    data = to_tflite(graph)
    for _ in range(choice.choice((0, 1, 1))):
        data = mutate_values(data, choice)
    return data


def accepted(choice: random.Random) -> Iterator[Network]:
    """Yield random networks that `load` accepts."""
    while True:
        with refused():
            yield load(model(choice), name="fuzz")


def _emit(folder: Path) -> Check:
    del folder
    boards = [load_board(name) for name in board_names()]

    def check(choice: random.Random) -> bool:
        network = next(accepted(choice))
        job = Job(board=choice.choice(boards), backends=choice.choice(_BACKENDS))
        with refused():
            emit(network, job)
            return True
        return False

    return check


def _build(folder: Path) -> Check:
    compiler = (*require_cc(), *_FLAGS)
    environment = {**os.environ, **require_sanitizers("address")}
    environment.pop("LD_PRELOAD", None)
    objects = _Objects(compiler)
    board = load_board("mps2-an386")

    def check(choice: random.Random) -> bool:
        network, artifact = _emitted(choice, board)
        inputs = random_inputs(network, choice.randrange(2**31))
        with np.errstate(all="ignore"):
            expected = run_bounded(network, inputs)
        program = _compiled(artifact, network, folder, compiler, objects)
        done = subprocess.run(
            [program],
            input=b"".join(each.tobytes() for each in inputs),
            capture_output=True,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, f"the program ended with {done.returncode}:\n{done.stderr.decode()[-3000:]}"
        at = 0
        for info, wanted in zip(network.outputs, expected, strict=True):
            found = np.frombuffer(done.stdout[at : at + info.size_bytes], info.dtype.numpy).reshape(info.shape)
            at += info.size_bytes
            _check_output(info, found, wanted)
        return True

    return check


def _emitted(choice: random.Random, board: Board) -> tuple[Network, Artifact]:
    """Return a random network that is small enough to run, and its code for the core."""
    networks = accepted(choice)
    while True:
        network = next(networks)
        if sum(each.info.elements for each in network.tensors) < MAX_ELEMENTS and network.macs() < MAX_MACS:
            with refused():
                return network, emit(network, Job(board=board, backends=("CpuAcc",)))


def _check_output(info: TensorInfo, found: Array, bounded: Bounded) -> None:
    """Compare an output where a bound is known; sums near the limits of their type overflow in some orders only."""
    wanted = bounded.values
    if bounded.error is not None:
        unknown = ~np.isfinite(bounded.error)
        zero = wanted.dtype.type(0)
        found, wanted = np.where(unknown, zero, found), np.where(unknown, zero, wanted)
    verdict, difference = compare([found], [wanted], [bounded.error])
    assert verdict is not Verdict.DIFFERENT, (
        f"{info} differs by {difference}: {found.ravel()[:20]} {wanted.ravel()[:20]}"
    )


class _Objects:
    """The objects of the kernels, compiled once by all processes together."""

    def __init__(self, compiler: Sequence[str]) -> None:
        self._compiler = compiler
        root = resources.root()
        digest = hashlib.sha256(" ".join(compiler).encode())
        for folder in ("include", "src_c"):
            for path in sorted((root / folder).rglob("*.[ch]")):
                digest.update(path.read_bytes())
        self._folder = Path(tempfile.gettempdir()) / f"ferrule-fuzz-objects-{digest.hexdigest()[:16]}"
        self._folder.mkdir(exist_ok=True)

    def of(self, source: Path, includes: Sequence[str]) -> Path:
        """Return the object of a kernel's source."""
        path = self._folder / f"{source.stem}.o"
        if not path.exists():
            with tempfile.NamedTemporaryFile(dir=self._folder, suffix=".o", delete=False) as file:
                _call([*self._compiler, *includes, "-c", "-o", file.name, str(source)])
            Path(file.name).replace(path)
        return path


def _compiled(artifact: Artifact, network: Network, folder: Path, compiler: Sequence[str], objects: _Objects) -> Path:
    """Return the program that reads the inputs, runs the model once and writes the outputs."""
    includes = [f"-I{path}" for part in artifact.contributions for path in part.include_paths]
    kernels = [objects.of(path, includes) for part in artifact.contributions for path in part.source_paths]
    for name, text in artifact.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    source, program = folder / "case.c", folder / "case"
    source.write_text(_main(artifact, network), encoding="utf-8")
    _call([*compiler, *WARNINGS, *includes, f"-I{folder}", "-o", str(program), str(source), *map(str, kernels)])
    return program


def _main(artifact: Artifact, network: Network) -> str:
    prefix = f"ferrule_{artifact.symbol}"
    lines = [f'#include "{prefix}_weights.c"', f'#include "{prefix}.c"', "#include <stdio.h>", "#include <stdlib.h>"]
    lines += ["int main(void)", "{"]
    for kind, infos in (("input", network.inputs), ("output", network.outputs)):
        for number, info in enumerate(infos):
            lines.append(f"    void *{kind}_{number} = malloc({info.size_bytes});")
            if kind == "input":
                lines.append(
                    f"    if (fread({kind}_{number}, 1, {info.size_bytes}, stdin) != {info.size_bytes}) return 2;"
                )
            else:
                lines.append(f"    memset({kind}_{number}, 0xA5, {info.size_bytes});")
        members = ", ".join(f"{kind}_{number}" for number in range(len(infos)))
        lines.append(f"    struct {prefix}_{kind}s {kind}s = {{{members}}};")
    lines.append(f"    memset({prefix}_default_{REGION}, 0xA5, sizeof {prefix}_default_{REGION});")
    lines.append(f"    if ({prefix}_run(&inputs, &outputs, &{prefix}_default_memory, NULL) != 0) return 3;")
    for number, info in enumerate(network.outputs):
        lines.append(f"    fwrite(output_{number}, 1, {info.size_bytes}, stdout);")
        lines.append(f"    free(output_{number});")
    lines += [f"    free(input_{number});" for number in range(len(network.inputs))]
    return "\n".join([*lines, "    return 0;", "}", ""])


def _call(argv: Sequence[str]) -> None:
    done = ran(argv)
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stderr[-3000:]}"


def _needs_sanitizers() -> None:
    require_cc()
    require_sanitizers("address")


TARGETS = (
    Target(name="emit", share=0.1, prepare=_emit, rate=60, sample=10, reads=False),
    Target(
        name="build",
        share=0.002,
        prepare=_build,
        rate=3,
        sample=2,
        limit_s=60,
        reads=False,
        limits_memory=False,
        needs=_needs_sanitizers,
    ),
)
