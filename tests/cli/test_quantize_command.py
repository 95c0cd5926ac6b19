# SPDX-License-Identifier: Apache-2.0
"""`ferrule quantize`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from float_networks import convolutions, samples
from needs import require_module
from page_reader import Page

import ferrule as package
from ferrule.formats import to_tflite
from ferrule.report.quantization_document import QuantizationDocument
from ferrule.report.reading import read_document
from ferrule.report.search_document import SearchDocument

Ferrule = Callable[..., Any]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    require_module("ai_edge_quantizer", "pip install 'ferrule[quantize]'")
    network = convolutions()
    samples(network, tmp_path)
    path = tmp_path / "own.tflite"
    path.write_bytes(to_tflite(network))
    return path


def test_a_model_becomes_integers(ferrule: Ferrule, model: Path, tmp_path: Path) -> None:
    out, report, page = tmp_path / "out.tflite", tmp_path / "report.json", tmp_path / "page.html"
    options = ("--out", out, "--keep", "SOFTMAX", "--json", report, "--html", page)
    done = ferrule("quantize", model, "--data", tmp_path / "cal.npy", *options)
    assert done.code == 0, done.err
    assert "layers that stay in float32" in done.out
    assert "it is kept in float32" in done.out
    network = package.load(out)
    assert str(network.inputs[0].dtype) == "int8"
    assert f"out.tflite: {out.stat().st_size:,} B" in done.out
    document = read_document(report)
    assert isinstance(document, QuantizationDocument)
    assert document.keep == ("SOFTMAX",)
    assert document.data.samples == 12
    assert document.model.file == "own.tflite"
    assert "SQNR" in page.read_text(encoding="utf-8")


def test_the_file_is_named_by_the_scheme(
    ferrule: Ferrule, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = ferrule("quantize", model, "--data", "cal.npy", "--scheme", "int16", "--limit", "5", "-q")
    assert (done.code, done.out) == (0, ""), done.err
    assert str(package.load(tmp_path / "own_int16.tflite").inputs[0].dtype) == "int16"


def test_nothing_is_written_if_it_fails(ferrule: Ferrule, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    done = ferrule("quantize", model, "--data", tmp_path / "cal.npy", "--out", out, "--keep", "leeky")
    assert done.code == 2
    assert "there is no layer 'leeky' in 'own'" in done.err
    done = ferrule("quantize", model, "--data", tmp_path / "cal.npy", "--out", tmp_path / "out.onnx")
    assert "has the suffix '.onnx', expected '.tflite'" in done.err
    done = ferrule("quantize", model, "--data", tmp_path / "missing.npy", "--out", out, "--markdown", tmp_path / "m.md")
    assert done.code == 2
    assert not out.exists()
    assert not list(tmp_path.glob("*.onnx"))


def test_labels_give_the_metrics_of_both_models(ferrule: Ferrule, model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.arange(12) % 4)
    options = ("--labels", tmp_path / "y.npy", "--out", tmp_path / "o.tflite", "--html", tmp_path / "page.html")
    done = ferrule("quantize", model, "--data", tmp_path / "cal.npy", *options)
    assert done.code == 0, done.err
    text = Page((tmp_path / "page.html").read_text(encoding="utf-8")).text
    assert "metric value float model change" in text
    assert "others judge the model better" in text


def test_the_losses_as_json(ferrule: Ferrule, model: Path, tmp_path: Path) -> None:
    done = ferrule("quantize", model, "--data", tmp_path / "cal.npy", "--out", tmp_path / "o.tflite", "--json", "-")
    losses = json.loads(done.out)["losses"]
    assert [each["type"] for each in losses][:3] == ["input", "CONV_2D", "LEAKY_RELU"]
    assert all(0 <= each["unused"] < 1 for each in losses)


def test_a_search_within_a_budget(ferrule: Ferrule, model: Path, tmp_path: Path) -> None:
    data, out, report = tmp_path / "cal.npy", tmp_path / "out.tflite", tmp_path / "r.json"
    options = ("--data", data, "--board", "mps2-an386", "--evaluations", "2", "--out", out, "--json", report)
    done = ferrule("quantize", model, *options, "--budget", "flash=1M,ram=1M")
    assert done.code == 0, done.err
    assert out.exists()
    assert "built and run" in done.out
    document = read_document(report)
    assert isinstance(document, SearchDocument)
    assert document.chosen
    out.unlink()
    done = ferrule("quantize", model, *options, "--budget", "flash=16")
    assert done.code == 1
    assert "None of 2 settings keeps flash 16" in done.out
    assert not out.exists()
    for wrong, message in (
        (("--budget", "flash=1M", "--keep", "x"), "--keep and --budget exclude each other"),
        (("--budget", "flash=1M", "--equalise", "on"), "--equalise on and --budget exclude each other"),
        (("--equalise", "maybe"), "'maybe' is not one of 'auto', 'on', 'off'"),
        (("--metric", "accuracy"), "--metric is for a search"),
        (("--budget", "rom=1"), "--budget has 'rom=1'"),
    ):
        done = ferrule("quantize", model, "--data", data, *wrong)
        assert done.code == 2
        assert message in done.err


def test_a_search_over_models(ferrule: Ferrule, model: Path, tmp_path: Path) -> None:
    other, data, out = tmp_path / "other.tflite", tmp_path / "cal.npy", tmp_path / "out.tflite"
    other.write_bytes(model.read_bytes())
    options = ("--budget", "flash=1M", "--evaluations", "2", "--board", "mps2-an386", "--json", tmp_path / "r.json")
    done = ferrule("quantize", model, other, "--data", data, "--out", out, *options)
    assert done.code == 0, done.err
    document = read_document(tmp_path / "r.json")
    assert isinstance(document, SearchDocument)
    assert [each.model for each in document.trials] == ["own", "other"]
    assert "other" in done.out
    for wrong, message in (
        ((), "2 models are given, and one is quantised at a time"),
        (options[:2], "--out is missing"),
        ((*options[:2], "--out", out, "--data", data, "--data", data), "3 --data are given for 2 models"),
    ):
        done = ferrule("quantize", model, other, "--data", data, *wrong)
        assert done.code == 2
        assert message in done.err
