# SPDX-License-Identifier: Apache-2.0
"""Requantisations that multiply and divide with int64, between float32 tensors, which int32 layers compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onnx_models import count, load, model, node
from oracle import onnxruntime_outputs

from ferrule.errors import UnsupportedError
from ferrule.graph import Array, LayerType

NEMO = [(46, 1 << 23), (3, 1 << 24), (55, (1 << 24) - 1), (54, (1 << 21) - 1), (63, (1 << 18) - 1), (32, 32)]
"""Factors and divisors of networks for PULP."""
CAST = [node("Cast", "x", "i", to=7), node("Mul", "i m", "p"), node("Div", "p d", "q"), node("Cast", "q", "f", to=1)]
AGAIN = [node("Cast", "f", "g", to=7), node("Cast", "g", "h", to=1)]


def shared(factor: Any, divisor: Any, low: float = 0, high: float = 255, *, again: bool = False) -> Any:  # noqa: ANN401
    """Return a model of a requantisation, with further casts before its Clip."""
    constants = {"m": np.array([factor]), "d": np.array(divisor), "l": np.float32(low), "u": np.float32(high)}
    nodes = [*CAST, *(AGAIN if again else []), node("Clip", f"{'h' if again else 'f'} l u", "y")]
    return model(nodes, {"x": ("float32", [2000])}, ["y"], constants)


def edges(factor: int, divisor: int, high: int) -> Array:
    """Return the numbers round each step of the result, round the limits, far beyond them, and between integers."""
    steps = np.arange(-3, high + 4) * divisor / factor
    near = np.concatenate([np.floor(steps) + each for each in (-1, 0, 1, 0.5)])
    far = [-(2.0**50), -(2.0**31), -1.5, -0.5, 0.5, 2.0**31, 2.0**33, 2.0**50]
    drawn = np.random.default_rng(7).uniform(-1, 1, 2000) * high * divisor / factor
    return np.concatenate([far, near, drawn])[:2000].astype(np.float32)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("factor", "divisor"), NEMO)
def test_results_equal_those_of_onnxruntime(factor: int, divisor: int, again: bool) -> None:
    made, x = shared(factor, divisor, again=again), edges(factor, divisor, 255)
    network = load(made)
    assert_array_equal(network.run([x])[0], onnxruntime_outputs(made, {"x": x})[0])
    assert count(network, LayerType.DIV) == (2 if (255 + 1) * divisor >= 1 << 31 else 1)


@pytest.mark.parametrize(("low", "high"), [(0, 15.5), (3, 12), (0, 0), (0, 65535)])
def test_other_limits(low: float, high: float) -> None:
    made, x = shared(77, 4096, low, high), edges(77, 4096, 40)
    assert_array_equal(load(made).run([x])[0], onnxruntime_outputs(made, {"x": x})[0])


def test_a_number_after_a_rounding_is_float32_too() -> None:
    nodes = [node("Floor", "a", "x"), *CAST, node("Clip", "f l u", "y")]
    constants = {"m": np.array([5]), "d": np.array(7), "l": np.float32(0), "u": np.float32(255)}
    made = model(nodes, {"a": ("float32", [2000])}, ["y"], constants)
    a = edges(5, 7, 255)
    assert_array_equal(load(made).run([a])[0], onnxruntime_outputs(made, {"a": a})[0])


def read_elsewhere() -> Any:  # noqa: ANN401
    """Return a model whose product is an output, too."""
    made = shared(5, 7)
    made.graph.output.append(model(CAST, {"x": ("float32", [2000])}, ["p"]).graph.output[0])
    return made


REFUSED: dict[str, Callable[[], Any]] = {
    "a negative limit": lambda: shared(5, 7, low=-1),
    "no limit": lambda: shared(5, 7, high=np.inf),
    "a negative factor": lambda: shared(-5, 7),
    "a negative divisor": lambda: shared(5, -7),
    "a number beyond 32 bits": lambda: shared(1, 1 << 24),
    "a rest beyond 32 bits": lambda: shared(1 << 10, 1 << 24),
    "a product that is an output": read_elsewhere,
}


@pytest.mark.parametrize("made", REFUSED.values(), ids=REFUSED)
def test_what_may_not_fit_is_refused(made: Callable[[], Any]) -> None:
    with pytest.raises(UnsupportedError, match=r"Mul\w* -> tensor 'p': its data are int64"):
        load(made())
