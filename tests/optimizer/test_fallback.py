# SPDX-License-Identifier: Apache-2.0
"""The fallback from a backend that was left out, and its absence: each layer on its first backend, or an error."""

from __future__ import annotations

import pytest
from mock_backends import Mock, chain, mock, registry_of
from optimizer_mocks import backend, by_name, line, registry, takes, takes_all

from ferrule.backends.capability import ALL_OR_NOTHING
from ferrule.backends.context import BackendUnavailableError, CreationOptions
from ferrule.backends.device import BackendId
from ferrule.errors import FerruleError, UnsupportedError
from ferrule.graph import Graph, LayerType
from ferrule.optimizer import OptimizerOptions, optimize
from ferrule.runtime import Runtime

B = backend("B")
RELUS = backend("Relus", takes(LayerType.RELU))
STRICT = OptimizerOptions(simplify=False, fallback=False)


def absent(self: Mock, options: CreationOptions) -> None:
    raise BackendUnavailableError("there is no such chip on this machine")


def test_a_backend_that_a_runtime_left_out_is_passed_over_with_a_message() -> None:
    with Runtime(registry=registry_of(mock("Absent", context=absent), Mock)) as runtime:
        optimized = optimize(chain(), ["Absent", "Mock"], runtime.registry)
        assert optimized.backends == ("Mock",)
        assert optimized.warnings == ("backend Absent is left out: there is no such chip on this machine",)
        with pytest.raises(FerruleError, match=r"none of the preferred .* Absent: there is no such chip"):
            optimize(chain(), ["Absent"], runtime.registry)
        with pytest.raises(FerruleError, match="there is no backend 'Abcent'"):
            optimize(chain(), ["Abcent", "Mock"], runtime.registry)


def test_what_was_left_out_keeps_its_reason_until_it_is_registered_again() -> None:
    source = registry_of(Mock)
    child = source.scope(without={BackendId("Mock"): "not here"})
    for each in (child, child.scope()):
        assert (each.ids(), each.known_ids(), "Mock" in each) == ((), ("Mock",), False)
        with pytest.raises(BackendUnavailableError, match=r"^not here$"):
            each.create("Mock")
    child.register("Mock", Mock)
    assert child.create("Mock").id == "Mock"
    assert child.known_ids() == ("Mock",)


def refused(graph: Graph, preferences: list[str], options: OptimizerOptions = STRICT) -> str:
    whole = backend("Whole", takes(LayerType.RELU), capabilities={ALL_OR_NOTHING: True})
    failing = backend("Failing", takes_all, optimise=by_name)
    with pytest.raises(UnsupportedError) as error:
        optimize(graph, preferences, registry(RELUS, B, whole, failing), options)
    assert "with fallback=True" in (error.value.hint or "")
    return str(error.value)


def test_without_fallback_all_layers_that_the_first_backend_refuses_are_listed() -> None:
    names = [f"tanh{number}" for number in range(12)]
    text = refused(line("a", *names), ["Relus", "B"])
    assert text.splitlines() == [
        f"layer '{name}' (TANH) cannot run on its first backend; Relus: TANH is not for me" for name in names
    ]


def test_without_fallback_a_layer_stays_with_the_backend_of_its_hint() -> None:
    options = OptimizerOptions(simplify=False, fallback=False, hints={"tanh": "B"})
    optimized = optimize(line("a", "tanh"), ["Relus"], registry(RELUS, B), options)
    assert {name: optimized.assignment[name].backend for name in ("a", "tanh")} == {"a": "Relus", "tanh": "B"}
    hinted = OptimizerOptions(simplify=False, fallback=False, hints={"a": "Relus", "tanh": "Relus"})
    assert "'tanh' (TANH) cannot run on its first backend; Relus" in refused(line("a", "tanh"), ["B"], hinted)
    nowhere = OptimizerOptions(simplify=False, fallback=False, hints={"a": "Nowhere"})
    assert "'Nowhere' for layer 'a' cannot be met" in refused(line("a"), ["B"], nowhere)


def test_without_fallback_later_failures_are_errors_too() -> None:
    assert "refuses layer 'tanh'" in refused(line("a", "tanh"), ["Whole", "B"])
    assert "it failed to optimise the layer" in refused(line("a", "unoptimizable"), ["Failing", "B"])


def test_without_fallback_the_first_backend_must_be_usable() -> None:
    with (
        Runtime(registry=registry_of(mock("Absent", context=absent), Mock)) as runtime,
        pytest.raises(FerruleError, match=r"the first backend cannot be used here\. Absent: there is no such chip"),
    ):
        optimize(chain(), ["Absent", "Mock"], runtime.registry, OptimizerOptions(fallback=False))
