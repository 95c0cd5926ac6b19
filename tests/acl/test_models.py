# SPDX-License-Identifier: Apache-2.0
"""The MLPerf Tiny models as classes of both targets: each layer with exact inputs, compared with numpy."""

from __future__ import annotations

from pathlib import Path

import pytest
from acl_programs import build_many, run_stepwise
from gate import every
from needs import require_acl

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
"""Eleven of its layers have factors that version 20.08 takes as 0."""


def model(models: Path, name: str) -> Network:
    return load(models / f"{name}.tflite", dequantize_weights=name == "kws_ref_model_float32")


def is_refused(name: str) -> bool:
    return name == REFUSED_ON_OLD and require_acl().version == "20.08"


@pytest.fixture(scope="module")
def program(models: Path, tmp_path_factory: pytest.TempPathFactory) -> TraceProgram:
    """One program with the classes of all models for both targets."""
    options = AclOptions(version=require_acl().version)
    artifacts = [
        generate_class(model(models, name), target=target, name=f"{side}_{name}", options=options)
        for name in (*FLOAT, *INT8)
        for side, target in TARGETS.items()
        if not is_refused(name)
    ]
    return build_many(artifacts, tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("side", TARGETS)
@pytest.mark.parametrize("name", every(2, [*FLOAT, *INT8]))
def test_every_tensor_is_the_references(program: TraceProgram, models: Path, name: str, side: str) -> None:
    network = model(models, name)
    if is_refused(name):
        options = AclOptions(version=require_acl().version)
        with pytest.raises(UnsupportedError, match=r"version 20\.08 takes the factors of"):
            generate_class(network, target=TARGETS[side], options=options)
        return
    inputs = {info.name: pattern(info) for info in network.inputs}
    comparisons = run_stepwise(program, f"{side}_{name}", network, inputs)
    assert len(comparisons) == len(network.layers)
    assert not [each for each in comparisons if each.verdict is Verdict.DIFFERENT]


def test_the_old_version_is_refused_layer_by_layer(models: Path) -> None:
    network = model(models, REFUSED_ON_OLD)
    reasons = [supported(network, layer, AclOptions(version="20.08")) for layer in network.layers]
    assert sum(map(bool, reasons)) > 1
    assert all(reason.startswith("version 20.08 takes the factors") for reason in reasons if reason)
    assert not any(supported(network, layer, AclOptions(version="24.11")) for layer in network.layers)
