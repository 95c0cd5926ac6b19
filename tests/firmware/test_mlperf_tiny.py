# SPDX-License-Identifier: Apache-2.0
"""Firmware that answers the runner of MLPerf Tiny: results, times, refusals, and the official runner itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import mlperf_bench
import numpy as np
import pytest
from mlperf_bench import Sample
from mlperf_runner import MlperfTinyRunner
from needs import require_module, require_variable
from small_networks import dense, two_by_two

import ferrule
from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.errors import FerruleError
from ferrule.firmware.mlperf_tiny import BENCHMARKS, check_app
from ferrule.link import Channel, FirmwareError, LinkError, LinkTimeoutError

BOARD = "mps2-an386"


def small_model(name: str) -> Network:
    """Return a small network with the shapes of a benchmark."""
    benchmark = BENCHMARKS[name]
    network = Network(f"small_{name}")
    scale = Quantization.of(0.25, -3) if benchmark.error else Quantization.of(1 / 256, -128)
    info = TensorInfo("x", (1, benchmark.inputs), DataType.INT8, quantization=scale)
    network.add_input(info)
    if benchmark.error:
        network.set_outputs([network.add_relu_layer("x", name="y")])
        return network
    random = np.random.default_rng(3)
    network.add_fully_connected_layer(
        "x",
        random.integers(-127, 128, (benchmark.outputs, benchmark.inputs), dtype=np.int8),
        random.integers(-300, 300, benchmark.outputs, dtype=np.int32),
        weights_quantization=Quantization.of(0.004),
        quantization=Quantization.of(0.05, 3),
        name="y",
    )
    network.set_outputs(["y"])
    return network


@pytest.fixture(scope="module")
def kws(arm_gcc: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The firmware of a small model with the shapes of kws01."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    return built("kws01", tmp_path_factory.mktemp("kws01"))


def built(name: str, folder: Path) -> Path:
    return mlperf_bench.firmware(name, small_model(name), folder / "project", BOARD, "arm-none-eabi-gcc")


@pytest.fixture
def runner(kws: Path) -> Iterator[MlperfTinyRunner]:
    """Our runner at that firmware."""
    with mlperf_bench.device(kws, BOARD, "unicorn") as (_, found):
        yield found


def samples(name: str) -> list[Sample]:
    return mlperf_bench.random_samples(name, small_model(name), 2)


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("name", ["kws01", pytest.param("ic01", marks=pytest.mark.nightly), "ad01"])
def test_results_equal_numpys(arm_gcc: str, kws: Path, tmp_path: Path, name: str) -> None:
    network, benchmark = small_model(name), BENCHMARKS[name]
    elf = kws if name == "kws01" else built(name, tmp_path)
    with mlperf_bench.device(elf, BOARD, "unicorn") as (_, runner):
        assert runner.names() == {
            "name-dut": "Ferrule", "profile": "ULPMark for tinyML Firmware V0.0.1", "model": name,
        }  # fmt: skip
        for sample in samples(name):
            wanted = mlperf_bench.expected(benchmark, network, sample.data)
            runner.load(sample.data)
            for count in (1, 3):  # the input lasts, however often it is used
                assert mlperf_bench.equal(runner.infer(count, 1).results, wanted)
            lines = [line for line in runner.command("db print") if line.startswith("m-buffer-")]
            assert bytes.fromhex("".join(line[9:] for line in lines).replace("-", "")) == sample.data


@pytest.mark.cc
@pytest.mark.emu
@pytest.mark.parametrize("engine", ["unicorn", "qemu"])
def test_times_grow_with_the_inferences(kws: Path, engine: str, request: pytest.FixtureRequest) -> None:
    if engine == "qemu":
        request.getfixturevalue("qemu")
    with mlperf_bench.device(kws, BOARD, engine) as (_, runner):
        runner.load(samples("kws01")[0].data)
        one, ten = runner.infer(10), runner.infer(100)
        assert one.elapsed_us > 0
        assert ten.elapsed_us == pytest.approx(10 * one.elapsed_us, rel=0.05)
        assert ten.per_second == pytest.approx(100e6 / ten.elapsed_us)


@pytest.mark.cc
@pytest.mark.emu
def test_refusals(runner: MlperfTinyRunner) -> None:
    for command, message in (
        ("infer 1 0", r"has 0 bytes, expected\s"),
        ("db load 0", "expected 1 to 490 bytes"),
        ("db load 491", "expected 1 to 490 bytes"),
        ("db load x", "expected 1 to 490 bytes"),
        ("db", "requires a subcommand"),
        ("db 00", "No more bytes are expected"),
        ("infer 0", "iterations must be >0"),
        ("infer -1", "iterations must be >0"),
        ("infer 1 x", "warmup must be >=0"),
        ("infer 4294967297", "iterations must be >0"),
        ("", "Unknown command: "),
        ("names", "Unknown command: names"),
        ("x" * 500, f"Unknown command: {'x' * 80}"),
    ):
        with pytest.raises(FirmwareError, match=message):
            runner.command(command)
    runner.command("db load 490")
    for digits in ("0", "0g", "g0", "012"):
        with pytest.raises(FirmwareError, match="pairs of hexadecimal digits"):
            runner.command(f"db {digits}")
    with pytest.raises(LinkError, match="has not confirmed 2 bytes"):
        MlperfTinyRunner.load(Confirming(runner), b"ab")
    runner.load(samples("kws01")[0].data)
    assert runner.infer(1).count == 1
    assert any("db load N" in line for line in runner.command("help"))
    assert any(line.startswith("m-lap-us-") for line in runner.command("timestamp"))


class Confirming(MlperfTinyRunner):
    """A runner whose device expects more bytes than it is sent."""

    def __init__(self, runner: MlperfTinyRunner) -> None:
        self._runner = runner

    def command(self, text: str, timeout_s: float | None = None) -> list[str]:
        return list(self._runner.command("db load 490" if text.startswith("db load") else text, timeout_s))


class Answering(Channel):
    """A device that answers every command with the same text."""

    def __init__(self, text: str) -> None:
        self._text, self._waiting = text, ""

    def write(self, data: bytes) -> None:
        self._waiting += self._text

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        data, self._waiting = self._waiting[:max_bytes].encode(), self._waiting[max_bytes:]
        return data


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ("m-ready\r\n", LinkError, "has 0 times and 0 results"),
        ("m-lap-us-1\r\nm-lap-us-3\r\nm-results-[1,x]\r\nm-ready\r\n", LinkError, "are no numbers: 1,x"),
        ("m-lap-us-1\r\nm-results-[1]\r\nm-ready\r\n", LinkError, "has 1 times and 1 results"),
        ("nothing of the kind\r\n", LinkTimeoutError, r"has not answered 'infer 1 0' .*nothing of the kind"),
        ("\xff", LinkTimeoutError, "has not answered"),
    ],
)
def test_a_device_that_answers_wrongly(answer: str, error: type[LinkError], message: str) -> None:
    with pytest.raises(error, match=message):
        MlperfTinyRunner(Answering(answer), timeout_s=0.01, infer_timeout_s=0.01).infer(1)


def test_the_clock_of_a_device_may_wrap() -> None:
    answer = "m-lap-us-4294967295\r\nm-lap-us-4\r\nm-results-[1]\r\nm-ready\r\n"
    assert MlperfTinyRunner(Answering(answer)).infer(1).elapsed_us == 5


@pytest.mark.parametrize(
    ("model", "job", "message"),
    [
        (dense(), {"app": "mlperf-tiny"}, "is of no benchmark of MLPerf Tiny"),
        (small_model("kws01"), {"app": "mlperf-tiny:ad01"}, "benchmark ad01 has 640 elements in and 640 out"),
        (small_model("kws01"), {"app": "mlperf-tiny:kws"}, "there is no benchmark of MLPerf Tiny 'kws'"),
        (small_model("kws01"), {"app": "mlperf"}, "there is no application 'mlperf'"),
        (small_model("kws01"), {"app": "link:kws01"}, "there is no application 'link:kws01'"),
        (small_model("kws01"), {"app": "mlperf-tiny", "platform": "cmsis"}, "is for bare metal, not for cmsis"),
        (two_by_two(), {"app": "mlperf-tiny"}, "has 2 inputs and 2 outputs"),
        ([small_model("kws01"), small_model("ad01")], {"app": "mlperf-tiny"}, "drives one model without state"),
    ],
)
def test_what_has_no_such_firmware(
    model: Network | list[Network], job: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(FerruleError, match=message):
        ferrule.generate(model, out=tmp_path / "project", **job)  # type: ignore[arg-type]
    assert not (tmp_path / "project").exists()


def test_other_types_are_refused() -> None:
    network = Network("real")
    network.add_input(TensorInfo("x", (1, 640), DataType.FLOAT32))
    network.set_outputs([network.add_relu_layer("x", name="y")])
    with pytest.raises(FerruleError, match="the runner's inputs are for int8"):
        ferrule.generate(network, app="mlperf-tiny", out="never")


def test_the_application_of_a_job_is_checked_before_the_model() -> None:
    check_app("link", "zephyr")
    assert "mlperf-tiny" in repr(ferrule.Job(app="mlperf-tiny"))


@pytest.mark.cc
def test_it_does_not_answer_the_link(arm_gcc: str, tmp_path: Path) -> None:
    firmware = ferrule.compile(
        small_model("kws01"), app="mlperf-tiny", toolchain="arm-none-eabi-gcc", out=tmp_path / "project"
    )
    with pytest.raises(FerruleError, match="the application mlperf-tiny, which does not answer Ferrule's link"):
        firmware.run()


@pytest.mark.cc
@pytest.mark.emu
def test_the_official_runner(arm_gcc: str, tmp_path: Path) -> None:
    checkout = require_variable(mlperf_bench.CHECKOUT)
    network, benchmark = small_model("ad01"), BENCHMARKS["ad01"]
    labelled = mlperf_bench.by_error(benchmark, network, mlperf_bench.random_samples("ad01", network, 4))
    mlperf_bench.write_data(tmp_path / "data", "ad01", labelled)
    (tmp_path / "logs").mkdir()
    python = os.environ.get("FERRULE_MLPERF_PYTHON")
    with mlperf_bench.at_a_port(built("ad01", tmp_path), BOARD, "unicorn") as port:
        text = mlperf_bench.official_runner(checkout, port, "a", tmp_path / "data", tmp_path / "logs", python)
    assert "Device model retrieved: ad01" in text
    assert "AUC = 1.000" in text
