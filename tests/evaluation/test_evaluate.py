# SPDX-License-Identifier: Apache-2.0
"""Evaluations of small networks: every sample's answer is that of the numpy reference, on the host and on a board."""

from __future__ import annotations

import pickle
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import numpy as np
import pytest
import small_networks
import state_networks
from numpy.testing import assert_array_equal

import ferrule
from ferrule.backends import BackendId
from ferrule.backends.registry import default_registry
from ferrule.cli.progress import TimeLeft
from ferrule.emulation import Clock, CrashReport, EngineError
from ferrule.errors import FerruleError, InputError
from ferrule.evaluation import host, on_board
from ferrule.evaluation.data import Chunk, DataSettings, open_data
from ferrule.evaluation.evaluate import _evidence
from ferrule.evaluation.host import HostRuns
from ferrule.evaluation.losses import layer_losses
from ferrule.evaluation.on_board import _begin, _work, beginnings, drawn_for_proof, pieces, processes
from ferrule.evaluation.predictions import on_host
from ferrule.graph import Array, DataType, TensorInfo
from ferrule.nativelib import NativeLibrary
from ferrule.network import Network
from ferrule.progress import Step
from ferrule.progress import say_nothing as quiet
from ferrule.report.evaluation_document import LabelPart, MetricPart
from ferrule.report.evidence import Evidence
from ferrule.running import RunRequest

pytestmark = pytest.mark.cc
SAMPLES = 90


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: samples of `dense` in x.npy, labels in y.npy, samples with sequences in s.npy and q.npy."""
    random = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", random.integers(-128, 128, (SAMPLES, 6)).astype(np.int8))
    np.save(tmp_path / "y.npy", random.integers(0, 4, SAMPLES))
    np.save(tmp_path / "s.npy", random.integers(-9, 9, (SAMPLES, 2)).astype(np.float32))
    np.save(tmp_path / "q.npy", np.repeat([5, 3, 8], [40, 1, 49]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers_of(network: Network, samples: Array) -> Array:
    return np.concatenate([network.run([sample[None]])[0] for sample in samples])


def test_all_samples_are_computed_exactly(folder: Path) -> None:
    network, x, y = small_networks.dense(), np.load(folder / "x.npy"), np.load(folder / "y.npy")
    done = ferrule.evaluate(network, "x.npy", "y.npy", metrics=["accuracy", "auc", "confusion"])
    expected = answers_of(network, x)
    assert_array_equal(done.outputs[0], expected)
    assert done.metric("accuracy").value == np.mean(expected.argmax(axis=1) == y)
    assert [part.name for part in done.metrics] == ["accuracy", "auc"]
    document = done.document
    assert (document.data.samples, document.data.form, len(document.data.digest)) == (SAMPLES, "npy", 64)
    assert (document.proof, document.float_model, done.verdict) == (None, None, None)
    assert document.confusion is not None
    assert sum(map(sum, document.confusion.counts)) == SAMPLES
    assert [(path.where, path.samples) for path in document.paths] == [("CpuAcc on the host", SAMPLES)]
    assert document.model.macs == 24
    real = network.outputs[0].dequantize(expected)
    margins = real.max(axis=1) - real[np.arange(SAMPLES), y]
    assert [part.score for part in document.worst] == pytest.approx(sorted(margins, reverse=True)[:10])
    assert repr(done).startswith("<Evaluation 'dense': 90 samples, accuracy ")


def test_layers_that_the_fast_path_lacks_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = default_registry().scope(without={BackendId("CpuAcc"): "it has a cold"})
    monkeypatch.setattr(host, "exact_backends", lambda: registry)
    done = ferrule.evaluate(small_networks.dense(), "x.npy")
    assert done.notes == ("CpuRef computes all layers, since CpuAcc cannot run here: it has a cold",)
    assert done.document.paths[0].where == "CpuRef on the host"
    assert_array_equal(done.outputs[0], answers_of(small_networks.dense(), np.load(folder / "x.npy")))


@pytest.mark.parametrize("name", ["kws_ref_model", "vww_96_int8", "ad01_int8", "pretrainedResnet_quant"])
def test_trained_models(models: Path, folder: Path, name: str) -> None:
    network = ferrule.load(models / f"{name}.tflite")
    x = np.random.default_rng(0).integers(-128, 128, (4, *network.inputs[0].shape[1:])).astype(np.int8)
    np.save(folder / "x.npy", x)
    done = ferrule.evaluate(network, "x.npy")
    assert_array_equal(done.outputs[0], answers_of(network, x))
    assert (done.notes, done.document.paths[0].where) == ((), "CpuAcc on the host")


def test_real_targets_and_own_metrics(folder: Path) -> None:
    network = small_networks.dense()
    targets = np.random.default_rng(1).normal(size=(SAMPLES, 4))
    np.save(folder / "t.npy", targets)
    (folder / "own.py").write_text(
        "import numpy as np\n"
        "def largest(outputs, labels): return np.abs(outputs[0] - labels).max()\n"
        "def each(outputs, labels): return np.abs(outputs[0] - labels).mean(axis=1)\n"
        "each.better = 'lower'\n"
    )
    metrics = ["mae", "own.py:largest", "own.py:each"]
    done = ferrule.evaluate(network, "x.npy", "t.npy", metrics=metrics, worst=3)
    real = network.outputs[0].dequantize(done.outputs[0]).astype(np.float64)
    assert done.metric("mae").value == pytest.approx(np.abs(real - targets).mean())
    assert done.metric("largest").value == pytest.approx(np.abs(real - targets).max())
    assert done.metric("each").value == pytest.approx(done.metric("mae").value)
    assert (done.metric("each").better, done.metric("each").low) == ("lower", pytest.approx(done.metric("mae").low))
    assert [part.score for part in done.document.worst] == pytest.approx(
        sorted(np.abs(real - targets).mean(axis=1), reverse=True)[:3]
    )
    assert (done.document.confusion, done.document.labels) == (None, ())


def test_a_state_begins_anew_for_each_sample_or_sequence(folder: Path) -> None:
    network, x, q = state_networks.running_sum(), np.load(folder / "s.npy"), np.load(folder / "q.npy")
    alone = ferrule.evaluate(network, "s.npy")
    assert_array_equal(alone.outputs[0], x + np.float32([1, -1]))
    expected = np.concatenate([np.cumsum(x[q == number], axis=0) for number in (5, 3, 8)]) + np.float32([1, -1])
    followed = ferrule.evaluate(network, "s.npy", sequence="q.npy")
    assert_array_equal(followed.outputs[0], expected)
    assert followed.document.metrics == ()


def test_reconstruction_is_scored_by_the_difference_from_the_input(folder: Path) -> None:
    network = Network("copy")
    network.add_input(small_networks.int8_input("x", 1, 6))
    network.set_outputs([network.add_relu_layer("x", name="y")])
    x = np.load(folder / "x.npy")
    x[::2] = np.abs(x[::2] // 2)  # what it reproduces is normal
    x[1::2, 0] = -5
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.arange(SAMPLES) % 2)
    done = ferrule.evaluate(network, "x.npy", "y.npy", score="reconstruction")
    assert done.metric("auc").value == 1.0
    assert done.document.worst == ()
    np.save(folder / "q.npy", np.arange(SAMPLES) % 2)
    with pytest.raises(InputError, match="goes on at sample 2 after another one"):
        ferrule.evaluate(network, "x.npy", "y.npy", score="reconstruction", sequence="q.npy")
    np.save(folder / "q.npy", np.arange(SAMPLES) // 10)
    with pytest.raises(InputError, match="the samples of sequence 0 have different labels"):
        ferrule.evaluate(network, "x.npy", "y.npy", score="reconstruction", sequence="q.npy")
    np.save(folder / "x.npy", x[np.argsort(np.arange(SAMPLES) % 2, kind="stable")])
    np.save(folder / "y.npy", np.arange(SAMPLES) // 45)
    np.save(folder / "q.npy", np.arange(SAMPLES) // 15)
    grouped = ferrule.evaluate(network, "x.npy", "y.npy", score="reconstruction", sequence="q.npy")
    assert grouped.metric("auc").value == 1.0
    with pytest.raises(FerruleError, match="samples are ranked and not classified"):
        ferrule.evaluate(network, "x.npy", "y.npy", score="reconstruction", metrics=["accuracy"])


def test_a_model_that_answers_the_number_of_a_class(folder: Path) -> None:
    network = small_networks.dense()
    network.set_outputs([network.add_arg_max_layer("y", axis=1, name="class")])
    scores = ferrule.evaluate(small_networks.dense(), "x.npy", "y.npy")
    numbers = ferrule.evaluate(network, "x.npy", "y.npy")
    assert numbers.metric("accuracy") == scores.metric("accuracy")
    assert numbers.document.confusion == scores.document.confusion


def test_float_model(folder: Path) -> None:
    network, floating = small_networks.dense(), small_networks.float_dense()
    x = np.load(folder / "x.npy")
    done = ferrule.evaluate(network, "x.npy", "y.npy", float_model=floating)
    part = done.document.float_model
    assert part is not None
    expected = answers_of(floating, network.inputs[0].dequantize(x))
    same = expected.argmax(axis=1) == done.outputs[0].argmax(axis=1)
    assert (part.agreement, part.inputs) == (same.mean(), "the quantised inputs, dequantised")
    difference = np.abs(network.outputs[0].dequantize(done.outputs[0]).astype(float) - expected).max()
    assert part.largest_difference == pytest.approx(difference, rel=1e-5)
    assert [each.name for each in part.metrics] == ["accuracy"]
    np.save(folder / "r.npy", network.inputs[0].dequantize(x))
    real = ferrule.evaluate(network, "r.npy", "y.npy", float_model=floating).document
    assert real.float_model is not None
    assert (real.float_model.inputs, real.float_model.agreement) == ("the data", part.agreement)
    assert real.data.digest == done.document.data.digest
    with pytest.raises(FerruleError, match="float_model: input 'x' of its model is int8, expected float32"):
        ferrule.evaluate(network, "x.npy", "y.npy", float_model=network)


def test_what_layers_lose_against_the_float_model(folder: Path) -> None:
    network, floating = small_networks.dense(), small_networks.float_dense()
    x = np.load(folder / "x.npy")[:16]
    part = ferrule.evaluate(network, "x.npy", "y.npy", float_model=floating).document.float_model
    assert part is not None
    names = [each.tensor for each in part.losses]
    assert names[-1] == network.outputs[0].name, "outputs are matched by their order"
    real = answers_of(floating, network.inputs[0].dequantize(x)).astype(np.float64)
    own = network.outputs[0].dequantize(answers_of(network, x)).astype(np.float64)
    assert part.losses[-1].error == pytest.approx(float(np.mean((own - real) ** 2)) ** 0.5, rel=1e-5)
    assert (part.losses[0].type, part.losses[0].error, part.compared) == ("input", 0.0, 16)
    assert len(part.losses) + part.unmatched == 1 + len(network.layers)
    none = ferrule.evaluate(network, "x.npy", "y.npy", float_model=floating, compared=0).document.float_model
    assert none is not None
    assert (none.losses, none.compared, none.unmatched) == ((), 0, 0)
    with pytest.raises(FerruleError, match="compared is -1, expected a number from 0 on"):
        ferrule.evaluate(network, "x.npy", "y.npy", float_model=floating, compared=-1)


def test_a_layer_is_not_measured_by_values_that_are_not_finite(folder: Path) -> None:
    network, floating = small_networks.dense(), small_networks.float_dense()
    whole, _ = layer_losses(
        network, floating, {}, [([np.ones((1, 6), np.float32)], [np.ones((1, 6), np.int8)])], 1, quiet
    )
    spoilt = [([np.full((1, 6), np.inf, np.float32)], [np.ones((1, 6), np.int8)])]
    losses, unmatched = layer_losses(network, floating, {}, spoilt, 1, quiet)
    assert losses == ()
    assert unmatched >= len(whole) > 0


def test_samples_with_another_label_than_by_the_float_model(folder: Path) -> None:
    network, floating = small_networks.dense(), small_networks.float_dense()
    x, y = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    done = ferrule.evaluate(network, "x.npy", "y.npy", float_model=floating)
    part = done.document.float_model
    assert part is not None
    real = answers_of(floating, network.inputs[0].dequantize(x)).astype(np.float64)
    own = network.outputs[0].dequantize(done.outputs[0]).astype(np.float64)
    theirs, mine = real.argmax(axis=1), own.argmax(axis=1)
    places = np.flatnonzero(theirs != mine)
    assert part.flips == len(places) > 0
    margins = {int(each): real[each, theirs[each]] - real[each, mine[each]] for each in places}
    assert [each.index for each in part.flipped] == sorted(margins, key=lambda each: -margins[each])[:20]
    for each in part.flipped:
        index = each.index
        assert (each.expected, each.float_label, each.label) == (str(y[index]), str(theirs[index]), str(mine[index]))
        assert each.float_margin == pytest.approx(margins[index], rel=1e-5)
        assert each.margin == pytest.approx(own[index, mine[index]] - own[index, theirs[index]], rel=1e-5)
        right = {str(mine[index]): "gained", str(theirs[index]): "lost"}
        assert each.effect == right.get(str(y[index]), "both wrong")
    unlabelled = ferrule.evaluate(network, "x.npy", float_model=floating).document.float_model
    assert unlabelled is not None
    assert [(each.index, each.expected, each.effect) for each in unlabelled.flipped] == [
        (each.index, "", "") for each in part.flipped
    ]


@pytest.mark.emu
def test_proof_on_a_board(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, x = small_networks.dense(), np.load(folder / "x.npy")
    options: dict[str, Any] = {"board": "mps2-an386", "proof": 7, "seed": 3}
    done = ferrule.evaluate(network, "x.npy", "y.npy", on_board=True, **options)
    proof = done.document.proof
    assert proof is not None
    assert (proof.verdict, len(set(proof.samples)), proof.seed) == (ferrule.Verdict.EXACT, 7, 3)
    assert (proof.report.build.board, len(proof.report.samples), proof.whole) == ("mps2-an386", 7, True)
    assert [path.samples for path in done.document.paths] == [SAMPLES, 7, SAMPLES]
    assert_array_equal(done.outputs[0], answers_of(network, x))

    chosen = proof.samples[4]
    run = HostRuns.run

    def wrong(self: HostRuns, inputs: list[Array], begins: list[bool]) -> list[Array]:
        outputs = run(self, inputs, begins)
        outputs[0][[chosen, (chosen + 1) % SAMPLES]] ^= 1  # one sample of the proof and another one
        return outputs

    monkeypatch.setattr(HostRuns, "run", wrong)
    caught = ferrule.evaluate(network, "x.npy", "y.npy", **options).document.proof
    assert caught is not None
    assert caught.verdict is ferrule.Verdict.DIFFERENT
    assert chosen in caught.different
    assert set(caught.different) <= {chosen, (chosen + 1) % SAMPLES}


def test_compiling_the_kernels_is_a_phase_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network, phases = small_networks.dense(), list[str]()
    monkeypatch.setattr(NativeLibrary, "file", lambda library, announce: announce())  # as with an empty cache
    data = open_data("x.npy", "y.npy", network.inputs, network.outputs, DataSettings(), None)
    on_host(network, data, lambda step: phases.append(step.phase))
    computing = f"computing {SAMPLES} samples on the host"
    assert list(dict.fromkeys(phases)) == ["compiling the kernels for this host, once", computing]


@pytest.mark.emu
def test_sequences_on_a_board(folder: Path) -> None:
    network = state_networks.running_sum()
    options: dict[str, Any] = {"sequence": "q.npy", "board": "mps2-an386", "proof": 12}
    done = ferrule.evaluate(network, "s.npy", on_board=True, **options)
    proof = done.document.proof
    assert proof is not None
    assert (proof.verdict, len(proof.samples), proof.different) == (ferrule.Verdict.EXACT, 12, ())
    assert_array_equal(done.outputs[0], ferrule.evaluate(network, "s.npy", sequence="q.npy").outputs[0])


@pytest.mark.emu
@pytest.mark.nightly
def test_several_processes(folder: Path) -> None:
    network, x = small_networks.dense(), np.load(folder / "x.npy")
    done = ferrule.evaluate(network, "x.npy", "y.npy", board="mps2-an386", on_board=True, jobs=2)
    assert_array_equal(done.outputs[0], answers_of(network, x))
    assert done.document.paths[-1].where == "mps2-an386 by unicorn in 2 processes"
    assert done.verdict is ferrule.Verdict.EXACT


@pytest.mark.emu
@pytest.mark.parametrize("jobs", [1, 2])
def test_inferences_that_repeat_waits_are_counted(folder: Path, jobs: int) -> None:
    options: dict[str, Any] = {"on_board": True, "jobs": jobs, "clock": Clock.CYCLES}
    notes = {
        board: done.document.proof.report.duration.note
        for board in ("nucleo_l4r5zi", "mps2-an386")
        if (done := ferrule.evaluate(small_networks.dense(), "x.npy", board=board, **options)).document.proof
    }
    counted = "the waits for data of {} of 90 inferences are those of a measured one, with which they agree"
    # each process measures two; one of them may be so late that the other has run all samples
    assert notes["nucleo_l4r5zi"] in {counted.format(SAMPLES - 2 * used) for used in range(1, jobs + 1)}
    assert notes["mps2-an386"] == ""


def test_errors_of_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this is no other process
    report = CrashReport(reason="hung", pc=4, symbol="main", instruction="", registers={}, notes=())

    def hung(*_: object) -> NoReturn:
        raise EngineError("hung", hint="reset it", report=report)

    monkeypatch.setattr(on_board, "RunningFirmware", hung)
    _begin(cast(Any, None), RunRequest(), on_command_line=False)
    chunk = Chunk(inputs=[], labels=None, names=(), sequences=None)
    answer = pickle.loads(pickle.dumps(_work(chunk, [])))  # noqa: S301 (made here)
    with pytest.raises(EngineError, match="hung") as caught:
        answer.result()
    assert (caught.value.hint, caught.value.report) == ("reset it", report)


def test_which_samples_run_where(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = state_networks.running_sum()
    data = open_data("s.npy", None, network.inputs, network.outputs, DataSettings(), None, sequence="q.npy")
    assert drawn_for_proof(data, 200, 0, stateful=True) == tuple(range(SAMPLES))
    assert drawn_for_proof(data, 5, 1, stateful=False) == drawn_for_proof(data, 5, 1, stateful=False)
    for seed in range(9):
        places = drawn_for_proof(data, 45, seed, stateful=True)
        assert len(places) == 45
        begins = beginnings(data, places)
        for place, begin, index in zip(places, begins, range(45), strict=True):
            assert begin == (place in {0, 40, 41})
            assert begin or places[index - 1] == place - 1  # a state is never skipped
    assert list(pieces(data, 1)) == [(0, 40), (40, 90)]
    assert [processes(data, jobs) for jobs in (1, 2, 9)] == [1, 2, 2]  # two of the three sequences are short
    free = open_data("s.npy", None, network.inputs, network.outputs, DataSettings(), None)
    for jobs, size in ((1, 22), (2, 11), (90, 1)):
        expected = [(start, min(start + size, SAMPLES)) for start in range(0, SAMPLES, size)]
        assert list(pieces(free, jobs)) == expected
        assert processes(free, jobs) == jobs
    monkeypatch.setattr(on_board, "PIECE", 7)
    assert list(pieces(free, 1))[:2] == [(0, 7), (7, 14)]


def other_input() -> Network:
    network = Network("other")
    network.add_input(TensorInfo("x", (1, 6), DataType.INT16))
    network.set_outputs(["x"])
    return network


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["acuracy"]}, "there is no metric 'acuracy'"),
        ({"metrics": "accuracy"}, "metrics is 'accuracy', expected a list"),
        ({"metrics": ["mae"]}, r"the labels have 1 value\(s\) per sample, expected 4"),
        ({"metrics": ["none.py:f"]}, "there is no file none.py"),
        ({"metrics": ["bad.py:f"]}, "bad.py fails: ZeroDivisionError"),
        ({"metrics": ["own.py:g"]}, "own.py has no function 'g'"),
        ({"metrics": ["own.py:f"]}, "own.py:f fails: KeyError: 'no'"),
        ({"metrics": ["own.py:pair"]}, r"returned values of shape \[2\], expected a number, or one for each of the 90"),
        ({"labels": None, "metrics": ["accuracy"]}, "x.npy has no labels"),
        ({"score": "loss"}, "the score is 'loss', expected output or reconstruction"),
        ({"score": "reconstruction"}, "output 'y' has 4 values and the inputs have 'x' 6"),
        ({"output": "z"}, "there is no output 'z' of the model"),
        ({"confidence": 95.0}, "the confidence level is 95"),
        ({"seed": -1}, "the seed is -1"),
        ({"proof": 0}, "proof is 0, expected at least 1"),
        ({"jobs": 2}, "several jobs are for running all samples on the board"),
        ({"on_board": True}, "no board is named"),
        ({"sequence": "q.npy"}, "network 'dense' has no state that samples could share"),
        ({"board": "none"}, "there is no board 'none'"),
        ({"board": "mps2-an386", "on_board": True, "jobs": 2, "engine": "serial"}, "only one job"),
    ],
)
def test_parameters_that_are_wrong(folder: Path, options: dict[str, Any], message: str) -> None:
    (folder / "bad.py").write_text("1 / 0\n")
    (folder / "own.py").write_text(
        "def f(outputs, labels): return {}['no']\ndef pair(outputs, labels): return [1, 2]\n"
    )
    with pytest.raises(FerruleError, match=message):
        ferrule.evaluate(small_networks.dense(), "x.npy", **{"labels": "y.npy", **options})


def test_data_sets_and_labels_that_do_not_fit(folder: Path) -> None:
    network = small_networks.dense()
    data = open_data("x.npy", "y.npy", network.inputs, network.outputs, DataSettings(), None)
    assert [part.name for part in ferrule.evaluate(network, data).metrics] == ["accuracy"]
    with pytest.raises(FerruleError, match="an open DataSet has its labels"):
        ferrule.evaluate(network, data, "y.npy")
    with pytest.raises(InputError, match="for the inputs of another model"):
        ferrule.evaluate(other_input(), data)
    with pytest.raises(InputError, match="input 'a' is a scalar"):
        ferrule.evaluate(small_networks.scalar(), "x.npy")
    np.save(folder / "y.npy", np.arange(SAMPLES))
    with pytest.raises(InputError, match="sample '4' has label 4, expected 0 to 3"):
        ferrule.evaluate(network, "x.npy", "y.npy")


def test_time_left() -> None:
    left = TimeLeft()
    assert left.text(Step(phase="a"), 0.0) == "a"
    assert left.text(Step(phase="a", done=1, total=100), 1.0) == "a: 1 of 100"
    assert left.text(Step(phase="a", done=10, total=100), 5.0) == "a: 10 of 100, 45 s left"
    assert left.text(Step(phase="b", done=1, total=3), 6.0) == "b: 1 of 3"
    assert left.text(Step(phase="b", done=2, total=3), 306.0) == "b: 2 of 3, 2 min 30 s left"
    assert left.text(Step(phase="b", done=2, total=300), 306.0) == "b: 2 of 300, 12 h 25 min left"
    assert left.text(Step(phase="b", done=3, total=3), 400.0) == "b: 3 of 3"


@pytest.mark.parametrize(
    ("found", "compared"),
    [
        (([MetricPart(name="m", value=None)], {}, None, None), False),
        (([MetricPart(name="m", value=0.0)], {}, None, None), True),
        (([], {"labels": (LabelPart(label="a", samples=1, recall=None, precision=None),)}, None, None), True),
        (([], {}, SimpleNamespace(agreement=None, largest_difference=None), None), False),
        (([], {}, SimpleNamespace(agreement=0.0, largest_difference=None), None), True),
        (([], {}, SimpleNamespace(agreement=None, largest_difference=0.0), None), True),
        (([], {}, None, SimpleNamespace(evidence=Evidence())), False),
        (([], {}, None, SimpleNamespace(evidence=Evidence(numbers=1))), True),
    ],
)
def test_outputs_count_as_compared_with_what_has_a_result(found: Any, compared: bool) -> None:  # noqa: ANN401 parts
    predictions: Any = SimpleNamespace(outputs=[np.zeros(2)], samples=2)
    assert bool(_evidence(predictions, *found)) is compared
