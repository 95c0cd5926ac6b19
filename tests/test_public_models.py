# SPDX-License-Identifier: Apache-2.0
"""The list of public models, and the command that checks them; the files are not part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from public_models import LEAST, Outcome, PublicModel, check, collection, located, main, report

from ferrule import DataType, Network, Quantization, TensorInfo
from ferrule.formats import to_tflite

_MODEL = PublicModel(repository="owner/name", commit="0" * 40, path="a.tflite", sha256="0" * 64, licence="MIT")


def network() -> Network:
    result = Network("sum")
    quantization = Quantization(scales=(0.5,))
    for name in ("x", "y"):
        result.add_input(TensorInfo(name=name, shape=(1, 4), dtype=DataType.INT8, quantization=quantization))
    result.set_outputs([result.add_add_layer("x", "y", quantization=quantization)])
    return result


def test_the_collection_is_large_enough_and_names_each_file_once() -> None:
    models = collection()
    assert len(models) >= LEAST
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


def test_a_model_is_compared_with_tflm(tmp_path: Path) -> None:
    path = tmp_path / "sum.tflite"
    path.write_bytes(to_tflite(network()))
    outcome = check(_MODEL, path, number=2, limit_s=60, board=None)
    assert (outcome.tflm, outcome.blocks, outcome.verdict, outcome.failed) == ("", [], "exact", False)


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
