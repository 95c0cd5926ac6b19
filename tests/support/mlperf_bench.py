# SPDX-License-Identifier: Apache-2.0
"""MLPerf Tiny on emulated boards: the firmware, its inputs and expected results, and the official runner at a port."""

from __future__ import annotations

import csv
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from children import ran
from mlperf_runner import MlperfTinyRunner

import ferrule
from ferrule._frozen import positional
from ferrule.emulation.serving import bridge
from ferrule.firmware import build_project
from ferrule.firmware.mlperf_tiny import BENCHMARKS as BENCHMARKS  # noqa: PLC0414 - the benchmark imports it from here
from ferrule.firmware.mlperf_tiny import Benchmark, Conversion
from ferrule.graph import Array, TensorInfo
from ferrule.link.pty import PtyChannel
from ferrule.network import Network
from ferrule.testing import Board, start

CHECKOUT = "FERRULE_MLPERF_TINY"
"""The variable that names a checkout of github.com/mlcommons/tiny."""
MODELS = {
    "kws01": "kws_ref_model.tflite",
    "vww01": "vww_96_int8.tflite",
    "ic01": "pretrainedResnet_quant.tflite",
    "ad01": "ad01_int8.tflite",
}
VID, PID = 0x0483, 0x374B
"""The USB identity of the reference board, under which the official runner looks for it."""
RUNNER_TIMEOUT_S = 900

_SHIM = """
import runpy, sys, types
import serial.tools.list_ports as ports
folder, port, vid, pid = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
found = types.SimpleNamespace(device=port, vid=vid, pid=pid, description="emulated board")
ports.comports = lambda *_: [found]
try:
    import usb.core
except ImportError:
    usb = types.ModuleType("usb"); usb.core = types.ModuleType("usb.core")
    sys.modules.update({"usb": usb, "usb.core": usb.core})
usb.core.find = lambda **_: []
sys.path.insert(0, folder)
sys.argv = [folder + "/main.py", *sys.argv[5:]]
runpy.run_path(folder + "/main.py", run_name="__main__")
"""
"""Starts the runner's unchanged main.py where the system's list of serial ports has one more: the emulated board's."""


@positional
class Sample:
    """An input as the runner sends it, and its label; None if there is none."""

    data: bytes
    label: int | None = None


def firmware(name: str, model: Path | Network, folder: Path, board: str, toolchain: str = "zig") -> Path:
    """Build the firmware of a benchmark for a board, and return its ELF file."""
    project = ferrule.generate(model, board=board, app=f"mlperf-tiny:{name}", toolchain=toolchain, out=folder)
    return build_project(project).path


def random_samples(name: str, network: Network, count: int, seed: int = 1) -> list[Sample]:
    """Return random inputs."""
    random = np.random.default_rng(seed)
    benchmark = BENCHMARKS[name]
    if benchmark.conversion is Conversion.FLOAT32:
        spread = random.uniform(0.5, 8.0, (count, 1))
        return [
            Sample(each.astype("<f4").tobytes()) for each in random.normal(0, 1, (count, benchmark.inputs)) * spread
        ]
    return [Sample(random.bytes(benchmark.inputs)) for _ in range(count)]


def read_samples(folder: Path, name: str, count: int | None) -> list[Sample]:
    """Return the inputs and labels of a data set in the layout of the official runner; of audio, the first window."""
    size = BENCHMARKS[name].received_bytes
    with (folder / name / "y_labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[:count]
    return [Sample((folder / name / row[0]).read_bytes()[:size], int(row[2])) for row in rows]


def model_input(benchmark: Benchmark, info: TensorInfo, data: bytes) -> Array:
    """Return the model's input for the bytes that the runner sends, by the rules of the reference firmwares."""
    if benchmark.conversion is Conversion.FLOAT32:
        assert info.quantization is not None
        scaled = np.frombuffer(data, "<f4") / np.float32(info.quantization.scales[0])
        rounded = np.trunc(scaled) + np.trunc(2 * (scaled - np.trunc(scaled)))
        stored = np.clip(rounded + info.quantization.zero_points[0], -128, 127).astype(np.int8)
    else:
        mask = 0x80 if benchmark.conversion is Conversion.UINT8 else 0
        stored = (np.frombuffer(data, np.uint8) ^ np.uint8(mask)).view(np.int8)
    return np.asarray(stored).reshape(info.shape)


def expected(benchmark: Benchmark, network: Network, data: bytes) -> Array:
    """Return the results that numpy computes for an input, without rounding to three decimals."""
    (info,), (result,) = network.inputs, network.outputs
    output = network.run([model_input(benchmark, info, data)])[0].reshape(-1)
    if result.quantization is not None:
        scale, zero = np.float32(result.quantization.scales[0]), result.quantization.zero_points[0]
        output = scale * (output.astype(np.int32) - zero).astype(np.float32)
    if benchmark.error:
        return np.array([np.mean((output - np.frombuffer(data, "<f4")) ** 2, dtype=np.float64)])
    return output


@contextmanager
def device(elf: Path, board: str, engine: str) -> Iterator[tuple[Board, MlperfTinyRunner]]:
    """Start a firmware, and yield the board and our runner when the device is ready."""
    with start(elf, board=board, engine=engine) as running:
        runner = MlperfTinyRunner(running.channel())
        runner.wait_until_ready()
        yield running, runner


@contextmanager
def at_a_port(elf: Path, board: str, engine: str) -> Iterator[str]:
    """Run a firmware in a thread, with its console at a pseudo-terminal, and yield the terminal's name."""
    over = threading.Event()
    port = PtyChannel()

    def serve() -> None:
        with start(elf, board=board, engine=engine) as running:
            bridge(running.channel(), port, until=over.is_set)

    thread = threading.Thread(target=serve, name="emulated board", daemon=True)
    thread.start()
    try:
        yield port.path
    finally:
        over.set()
        thread.join(60)
        port.close()


def equal(results: Sequence[float], wanted: Array) -> bool:
    """Return whether results with three decimals are those that numpy computes."""
    return len(results) == wanted.size and bool(np.allclose(results, wanted, rtol=2e-6, atol=0.000_501))


def by_error(benchmark: Benchmark, network: Network, samples: Sequence[Sample]) -> list[Sample]:
    """Return samples with the label 1 for the half with the larger results: AUC is 1 if a device keeps their order."""
    results = [float(expected(benchmark, network, sample.data)[0]) for sample in samples]
    middle = float(np.median(results))
    return [Sample(sample.data, int(result > middle)) for sample, result in zip(samples, results, strict=True)]


def write_data(folder: Path, name: str, samples: Sequence[Sample]) -> None:
    """Write samples in the layout of the official runner."""
    benchmark = BENCHMARKS[name]
    (folder / name).mkdir(parents=True)
    window = [str(benchmark.received_bytes), "512"] if benchmark.error else []
    rows = []
    for index, sample in enumerate(samples):
        (folder / name / f"{index}.bin").write_bytes(sample.data)
        rows.append([f"{index}.bin", str(2 if benchmark.error else benchmark.outputs), str(sample.label or 0), *window])
    with (folder / name / "y_labels.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def official_runner(checkout: Path, port: str, mode: str, data: Path, folder: Path, python: str | None = None) -> str:
    """Run the official runner's main.py, unchanged, for a device at a port; return what it prints.

    `mode` is `a` (accuracy) or `p` (performance), `data` a folder of data sets, and `folder` receives its log files.
    """
    runner = checkout / "benchmark" / "runner"
    devices = folder / "devices.yaml"
    devices.write_text(
        f"- name: emulated\n  type: dut\n  baud:\n    performance: 115200\n    accuracy: 115200\n"
        f"  usb:\n    {VID:#x}: {PID:#x}\n",
        encoding="utf-8",
    )
    scripts = {"a": "tests_accuracy.yaml", "p": "tests_performance.yaml"}
    argv = [python or sys.executable, "-c", _SHIM, str(runner), port, str(VID), str(PID)]
    argv += ["-d", str(devices), "-t", str(runner / scripts[mode]), "-s", str(data), "-m", mode]
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1"}
    done = ran(argv, cwd=folder, env=environment, timeout=RUNNER_TIMEOUT_S)
    text = done.stdout + done.stderr
    if done.returncode != 0:
        raise RuntimeError(f"the official runner ended with {done.returncode}:\n{text[-3000:]}")
    return text
