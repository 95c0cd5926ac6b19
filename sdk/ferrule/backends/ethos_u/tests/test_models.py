# SPDX-License-Identifier: Apache-2.0
"""The MLPerf Tiny models through Vela and the functional model, against the numpy kernels, which equal TFLM's."""

from __future__ import annotations

import numpy as np
import pytest
from ethos_u_models import MODELS, Execution, compiled, model_path
from oracle import edge_inputs

import ferrule
from ferrule.backends.ethos_u.configuration import CONFIGURATIONS, Configuration, configuration
from ferrule.testing.backends.comparison import random_inputs

NAMES = [each.name for each in CONFIGURATIONS]


def check(
    name: str, compiled_for: Configuration, *, inputs: int, native: bool = True, optimise: str = "Performance"
) -> None:
    network = ferrule.load(model_path(name))
    (stream,) = compiled([name], compiled_for, optimise=optimise)
    execution = Execution(stream, check_hazards=True, native=native)
    arrays = [random_inputs(network, seed) for seed in range(inputs)]
    if inputs > 1:
        arrays += edge_inputs(network).values()
    for (array,) in arrays:
        found, done = execution.run(array)
        (expected,) = network.run([array])
        assert np.array_equal(found, expected.reshape(-1))
        assert not any(step.hazards for step in done)
        assert sum(step.macs for step in done) > 0


@pytest.mark.parametrize(("name", "compiled_for"), [("kws", "ethos-u55-128"), ("ad01", "ethos-u65-512")])
def test_models_equal_the_reference(name: str, compiled_for: str) -> None:
    check(name, configuration(compiled_for), inputs=1)


@pytest.mark.nightly
@pytest.mark.parametrize("compiled_for", NAMES)
@pytest.mark.parametrize("name", MODELS)
def test_models_equal_the_reference_on_each_configuration(name: str, compiled_for: str) -> None:
    check(name, configuration(compiled_for), inputs=3)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_models_equal_the_reference_without_a_compiler(name: str) -> None:
    check(name, configuration("ethos-u55-64"), inputs=2, native=False)


@pytest.mark.nightly
@pytest.mark.parametrize("name", MODELS)
def test_models_equal_the_reference_where_vela_saves_memory(name: str) -> None:
    check(name, configuration("ethos-u55-256"), inputs=2, optimise="Size")
