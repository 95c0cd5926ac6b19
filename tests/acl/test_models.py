# SPDX-License-Identifier: Apache-2.0
"""The MLPerf Tiny models as classes of both targets: each layer with exact inputs, compared with numpy."""

from __future__ import annotations

from pathlib import Path

import pytest
from acl_programs import build_many, run_stepwise
from needs import require_acl

from ferrule.acl.comparison import overall
from ferrule.acl.program import TraceProgram
from ferrule.codegen.acl import AclOptions, generate_class, supported
from ferrule.errors import UnsupportedError
from ferrule.formats import load
from ferrule.network import Network
from ferrule.network.samples import pattern
from ferrule.report.document import Verdict

FLOAT = ("ad01_fp32", "kws_ref_model_float32", "pretrainedResnet", "vww_96_float")
INT8 = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
TARGETS = {"Gpu": "arm-gpu-c++", "Cpu": "arm-cpu-c++"}
REFUSED_ON_OLD = "vww_96_int8"
"""Five of its convolutions have factors that version 20.08 takes as 0."""

CASES = [
    pytest.param(model, side, marks=() if model in {"pretrainedResnet", "kws_ref_model"} else pytest.mark.nightly)
    for model in (*FLOAT, *INT8)
    for side in TARGETS
]
"""The gate runs a float and an int8 model; both have convolutions, pools, a flatten, a dense layer and a softmax."""


def model(models: Path, name: str) -> Network:
    return load(models / f"{name}.tflite", dequantize_weights=name == "kws_ref_model_float32")


@pytest.fixture(scope="module")
def programs(models: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TraceProgram]:
    """The programs that were built, by model: one for both targets."""
    require_acl()
    return {}


@pytest.mark.parametrize(("name", "side"), CASES)
def test_every_tensor_is_the_references(
    programs: dict[str, TraceProgram], models: Path, tmp_path_factory: pytest.TempPathFactory, name: str, side: str
) -> None:
    version = require_acl().version
    network = model(models, name)
    options = AclOptions(version=version)
    if name == REFUSED_ON_OLD and version == "20.08":
        with pytest.raises(UnsupportedError, match=r"version 20\.08 takes the factors of"):
            generate_class(network, target=TARGETS[side], options=options)
        return
    if name not in programs:
        artifacts = [
            generate_class(network, target=target, name=f"Net{each}", options=options)
            for each, target in TARGETS.items()
        ]
        programs[name] = build_many(artifacts, tmp_path_factory.mktemp(name))
    comparisons = run_stepwise(
        programs[name], f"Net{side}", network, {info.name: pattern(info) for info in network.inputs}
    )
    assert len(comparisons) == len(network.layers)
    wrong = [each for each in comparisons if each.verdict is Verdict.DIFFERENT]
    assert not wrong
    assert overall(comparisons) is not Verdict.DIFFERENT


def test_the_old_version_is_refused_layer_by_layer(models: Path) -> None:
    network = model(models, REFUSED_ON_OLD)
    reasons = [supported(network, layer, AclOptions(version="20.08")) for layer in network.layers]
    assert sum(map(bool, reasons)) > 1
    assert all(reason.startswith("version 20.08 takes the factors") for reason in reasons if reason)
    assert not any(supported(network, layer, AclOptions(version="24.11")) for layer in network.layers)
