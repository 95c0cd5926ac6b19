# SPDX-License-Identifier: Apache-2.0
"""The list of public models, and the command that checks them; the files are not part of the repository."""

from __future__ import annotations

import wave
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from audio_inputs import RATE_HZ, samples_of
from model_table import main, report, shortfalls
from needs import lacking, lacking_variable, require_variable
from public_models import (
    COLLECTION,
    FURTHER,
    LEAST,
    ONNX,
    Outcome,
    PublicModel,
    Setting,
    check,
    collection,
    keep,
    kept,
    located,
)

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.errors import MissingToolError
from ferrule.formats import to_tflite

_MODEL = PublicModel(repository="owner/name", commit="0" * 40, path="a.tflite", sha256="0" * 64, licence="MIT")


def network() -> Network:
    result = Network("sum")
    quantization = Quantization(scales=(0.5,))
    for name in ("x", "y"):
        result.add_input(TensorInfo(name, (1, 9000), DataType.INT8, quantization=quantization))
    result.set_outputs([result.add_add_layer("x", "y", quantization=quantization)])
    return result


def test_the_collections_are_large_enough_and_name_each_file_once() -> None:
    collections = [collection(path) for path in (COLLECTION, FURTHER, ONNX)]
    assert min(map(len, collections)) >= LEAST
    models = [model for each in collections for model in each]
    assert len({model.sha256 for model in models}) == len(models)
    assert all(len(bytes.fromhex(model.sha256)) == 32 and len(bytes.fromhex(model.commit)) == 20 for model in models)
    assert all(model.licence for model in models)


def test_files_are_found_by_their_contents_and_missing_ones_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.tflite").write_bytes(b"not a listed model")
    assert located(collection(), tmp_path) == {}
    assert main(None, ["--models", str(tmp_path), "kws_ref_model.tflite"]) == 1
    printed = capsys.readouterr().out
    assert "missing: mlcommons/tiny: " in printed
    assert all(model.sha256 in printed for model in collection() if "kws_ref_model.tflite" in model.name)
    with pytest.raises(SystemExit, match="no model has all of the words"):
        main(None, ["--models", str(tmp_path), "no such word"])
    assert main(None, ["--models", str(tmp_path), "--list", str(FURTHER), "mcunet-10fps_vww.tflite"]) == 1
    assert "missing: SimpleTinyML/oneliner: " in capsys.readouterr().out


def test_a_model_is_compared_with_tflm_and_its_outcome_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "sum.tflite"
    path.write_bytes(to_tflite(network()))
    setting = Setting(boards=("microbit",), steps=2, limit_s=60)
    outcome = check(_MODEL, path, setting)
    assert (outcome.tflm, outcome.blocks, outcome.verdict, outcome.failed) == ("", [], "exact", False)
    assert outcome.steps == 2
    assert outcome.boards["microbit"]["verdict"] == "too big"
    assert outcome.boards["microbit"]["detail"].endswith("region 'sram' holds 16384 B (1616 B too many)")
    results = tmp_path / "results"
    assert kept(_MODEL, setting, results) is None
    keep(outcome, setting, results)
    assert kept(_MODEL, setting, results) == outcome
    assert kept(_MODEL, replace(setting, steps=3), results) is None
    keep(Outcome(_MODEL, verdict="differs"), setting, results)
    assert kept(_MODEL, setting, results) is None


@pytest.mark.nightly
def test_an_output_that_the_caller_gives_back_becomes_a_state(tmp_path: Path) -> None:
    """The firmware of the emulated board keeps what TensorFlow Lite Micro's caller feeds back."""
    feedback = Network("feedback")
    for name in ("x", "old"):
        feedback.add_input(TensorInfo(name, (1, 1, 257), DataType.FLOAT32))
    feedback.add_add_layer("x", "old", name="y")
    feedback.add_mul_layer("y", "x", name="new")
    feedback.set_outputs(["new", "y"])
    path = tmp_path / "feedback.tflite"
    path.write_bytes(to_tflite(feedback))
    model = replace(_MODEL, audio="spectra", states={"old": "new"})
    outcome = check(model, path, Setting(boards=("mps2-an386",), steps=5, board_steps=4, audio="synthetic", limit_s=60))
    assert (outcome.verdict, outcome.steps) == ("exact", 5)
    assert outcome.boards["mps2-an386"].items() >= {"verdict": "exact", "steps": 4, "engine": "unicorn"}.items()


@pytest.mark.nightly
@pytest.mark.parametrize("model", [pytest.param(each, id=each.path) for each in collection() if each.audio])
def test_a_model_for_sound_is_exact_at_each_step(model: PublicModel) -> None:
    """A wake word, or a network of DTLN, on 300 steps of a synthetic sound, also on a board."""
    files = located([model], require_variable("FERRULE_PUBLIC_MODELS"))
    if model.sha256 not in files:
        lacking_variable("FERRULE_PUBLIC_MODELS", f"{model.name} at {model.commit}")
    setting = Setting(boards=("mps2-an386",), steps=300, board_steps=300, audio="synthetic", limit_s=600)
    try:
        outcome = check(model, files[model.sha256], setting)
    except MissingToolError as error:
        lacking(str(error), error.hint or "", rare=True)
    if outcome.tflm:
        assert any("hybrid" in reason for reason in outcome.blocks)
        return
    assert outcome.agrees("mps2-an386"), outcome
    assert (outcome.steps, outcome.boards["mps2-an386"]["steps"]) == (300, 300)


def test_a_sound_becomes_blocks_whatever_its_length(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "short.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(np.arange(300, dtype=np.int16).tobytes())
    assert samples_of(tmp_path / "short.wav", 700)[[0, 299, 300, 699]].tolist() == [0, 299, 0, 99]
    sound = samples_of(None, 4 * RATE_HZ)
    assert np.array_equal(sound, samples_of(None, 4 * RATE_HZ))
    loud = np.abs(sound.reshape(-1, RATE_HZ // 20).astype(np.int32)).max(axis=1)
    assert loud.max() > 8000
    assert loud.min() < 1000


def test_reasons_are_counted_over_models() -> None:
    outcomes = [
        Outcome(_MODEL, blocks=["SPLIT_V: this operator is not supported", "CAST: this operator is not supported"]),
        Outcome(_MODEL, tflm="status -6: no such kernel", blocks=["SPLIT_V: this operator is not supported"]),
        Outcome(_MODEL, verdict="differs", detail="output 0: 1 of 4 differ, by 1 at most"),
    ]
    lines = report(outcomes)
    assert "| SPLIT_V: this operator is not supported | 2 | 1 | 1 | owner/name: a.tflite |" in lines
    assert "| CAST: this operator is not supported | 1 | 1 | 0 | owner/name: a.tflite |" in lines
    assert "3 models; TensorFlow Lite Micro runs 2; of these, 1 differs, 1 refused" in lines
    assert outcomes[2].failed


def test_a_board_has_its_own_column_and_count_and_least_share() -> None:
    figures = {"steps": 2, "engine": "unicorn", "count": 1000, "flash": 2000, "ram": 300}
    outcomes = [
        Outcome(_MODEL, verdict="exact", steps=4, boards={"a": {"verdict": "exact"} | figures})
        for _ in range(LEAST - 1)
    ]
    assert shortfalls(outcomes, ["a"]) == [f"{LEAST - 1} models were checked, expected {LEAST} at least"]
    outcomes += [Outcome(_MODEL, verdict="close", boards={"a": {"verdict": "too big", "detail": "by 9 B"}})]
    assert shortfalls(outcomes, ["a"]) == []
    lines = report(outcomes, ["a"])
    assert (
        "| owner/name: a.tflite | runs | exact | 4 | exact, 2 steps, unicorn: 1,000 instructions, flash 2,000 B, "
        "RAM 300 B |  |"
    ) in lines
    assert "| owner/name: a.tflite | runs | close | - | too big | a: by 9 B |" in lines
    assert f"of these {LEAST} on a: {LEAST - 1} exact, 1 too big" in lines
    assert not any(each.failed for each in outcomes)
    for each in outcomes[:5]:
        each.boards["a"]["verdict"] = "fails"
    assert shortfalls(outcomes, ["a"]) == ["a: 94.0% agree, expected 95% at least"]
    assert shortfalls([]) == [
        f"0 models were checked, expected {LEAST} at least",
        "numpy: 0.0% agree, expected 95% at least",
    ]
