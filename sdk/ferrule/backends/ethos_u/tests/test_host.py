# SPDX-License-Identifier: Apache-2.0
"""EthosU on the host: the models of MLPerf Tiny as whole streams, and the families of tests for backends."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from needs import MODELS_SOURCE, lacking
from numpy.testing import assert_array_equal
from vela_options import OWN_FILE

from ferrule import formats
from ferrule._typing import override
from ferrule.backends.device import BackendId, Device
from ferrule.backends.ethos_u.backend import EthosU
from ferrule.backends.ethos_u.configuration import CONFIGURATIONS
from ferrule.backends.optimization_views import PreCompiledDescriptor
from ferrule.backends.option import OptionValue
from ferrule.backends.target import default_target
from ferrule.backends.workload import WorkloadInfo
from ferrule.errors import UnsupportedError
from ferrule.graph import Layer, LayerType
from ferrule.operators.operator import Operands
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime
from ferrule.testing.backends import BackendFamily, Subject

pytestmark = pytest.mark.usefixtures("ethos_u_vela")
MODELS = ("ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8")
OPTIONS: dict[str, dict[str, OptionValue]] = {
    "default": {},
    "size": {"optimise": "Size"},
    "sram": {"memory_mode": "Sram_Only"},
    "dedicated": {"memory_mode": "Dedicated_Sram_256KB"},
}
OWN: dict[str, OptionValue] = {
    "config_file": str(OWN_FILE),
    "system_config": "Own_Dram",
    "memory_mode": "Own_Dedicated",
}
"""A dedicated SRAM for Ethos-U55: Vela's own systems of it have no DRAM."""


@pytest.fixture(scope="session")
def models() -> Path:
    folder = os.environ.get("FERRULE_MODELS")
    if folder is None:
        lacking("FERRULE_MODELS", MODELS_SOURCE)
    return Path(folder)


def check(path: Path, configuration: str, options: dict[str, OptionValue], runs: int) -> None:
    """Run a model as one stream and compare its outputs with the reference."""
    network = formats.load(path)
    device = Device(name="npu", backend=BackendId("EthosU"), binding={"configuration": configuration})
    chosen = OptimizerOptions(devices=(device,), model_options={"EthosU": options})
    with Runtime() as runtime:
        optimized = optimize(network, ["EthosU"], runtime.registry, chosen)
        (layer,) = optimized.graph.layers
        assert layer.type is LayerType.PRE_COMPILED
        number = runtime.load_network(optimized)
        for seed in range(runs):
            random = np.random.default_rng(seed)
            inputs = [random.integers(-128, 128, info.shape).astype(np.int8) for info in network.inputs]
            found = runtime.enqueue_workload(number, inputs)
            for got, expected in zip(found, network.run(inputs), strict=True):
                assert_array_equal(got, expected)


@pytest.mark.parametrize("name", MODELS)
def test_whole_models_are_exact(models: Path, name: str) -> None:
    check(models / f"{name}.tflite", "ethos-u55-128", {}, 2)


@pytest.mark.nightly
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("configuration", [each.name for each in CONFIGURATIONS])
@pytest.mark.parametrize("name", MODELS)
def test_whole_models_are_exact_on_every_configuration(
    models: Path, name: str, configuration: str, options: str
) -> None:
    chosen = OWN if options == "dedicated" and "u55" in configuration else OPTIONS[options]
    check(models / f"{name}.tflite", configuration, chosen, 10)


def test_what_another_backend_compiled_is_refused() -> None:
    layer = Layer("foreign", LayerType.PRE_COMPILED, PreCompiledDescriptor(payload=1), inputs=(), outputs=())
    info = WorkloadInfo(
        layer=layer,
        operands=Operands((), ()),
        inputs=(),
        constants=(),
        outputs=(),
        target=default_target(BackendId("EthosU")),
    )
    with pytest.raises(UnsupportedError, match="'foreign' was compiled by another backend than EthosU"):
        EthosU().workload_factory(None, {}).create_workload(info)
    assert EthosU().has_host_face()


@pytest.mark.nightly
class TestEthosU(BackendFamily):
    @override
    @pytest.fixture(scope="class")
    @classmethod
    def subject(cls) -> Subject:
        return Subject(id="EthosU")
