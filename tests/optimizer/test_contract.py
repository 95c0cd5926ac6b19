# SPDX-License-Identifier: Apache-2.0
"""A fault in a backend ends in an error that names the backend and the call, and tells the user how to act."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from mock_backends import Mock, chain, mock, registry_of, sample

from ferrule import generate
from ferrule.backends.backend import Support
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref import CpuRef
from ferrule.backends.optimization_views import OptimizationViews
from ferrule.backends.shared.host_memory import HostTensorHandleFactory
from ferrule.errors import UnsupportedError
from ferrule.optimizer import OptimizerOptions, explain, optimize
from ferrule.runtime import Runtime

PLAIN = OptimizerOptions(simplify=False)


def boom(*arguments: object, **keywords: object) -> NoReturn:
    raise ValueError("boom")


class Answering:
    """A stand-in for any helper object of a backend, with the given methods."""

    def __init__(self, **methods: Callable[..., object]) -> None:
        for name, method in methods.items():
            setattr(self, name, method)


def supporting(supports: Callable[..., object]) -> dict[str, Any]:
    return {"layer_support": lambda self: Answering(supports=supports)}


def working(create: Callable[..., object]) -> dict[str, Any]:
    return {"workload_factory": lambda self, memory, options: Answering(create_workload=create)}


class NoHandles(HostTensorHandleFactory):
    def create_handle(self, *arguments: object, **keywords: object) -> None:  # type: ignore[override]
        return None


class BadHandles(NoHandles):
    create_handle = boom


OPTIMIZING: list[tuple[str, dict[str, Any], str]] = [
    ("support raises", supporting(boom), r"failed in supports\(\) for layer 'layer0' \(LEAKY_RELU\): ValueError: boom"),
    (
        "support is none",
        supporting(lambda graph, layer, target: None),
        r"returned None from supports\(\) .*, expected Support",
    ),
    ("support is a bool", supporting(lambda graph, layer, target: True), "returned a bool from supports"),
    (
        "no layer support",
        {"layer_support": lambda self: None},
        r"returned None from layer_support\(\), .* supports\(\)",
    ),
    ("layer support raises", {"layer_support": boom}, r"failed in layer_support\(\): ValueError: boom"),
    ("optimizing raises", {"optimize_subgraph": boom}, r"\['layer0', .*failed in optimize_subgraph\(\): ValueError"),
    ("factories raise", {"tensor_handle_factories": boom}, r"failed in tensor_handle_factories\(\)"),
    (
        "no factories",
        {"tensor_handle_factories": lambda self, memory: None},
        r"returned None from tensor_handle_factories\(\), expected Sequence",
    ),
    ("no views", {"optimize_subgraph": lambda self, view, target: None}, "returned None from optimize_subgraph"),
    (
        "no view",
        {"optimize_subgraph": lambda self, view, target: OptimizationViews(untouched=("layer0",))},  # type: ignore[arg-type]
        r"returned an OptimizationViews from optimize_subgraph\(\): untouched\[0\] is a str, expected SubgraphView",
    ),
]
LOADING: list[tuple[str, dict[str, Any], str]] = [
    ("factory raises", {"workload_factory": boom}, r"'Bad' failed in workload_factory_in\(\): ValueError: boom"),
    ("manager raises", {"memory_manager": boom}, r"'Bad' failed in memory_manager\(\): ValueError: boom"),
    ("no manager", {"memory_manager": lambda self, allocator: 3}, r"an int from memory_manager\(\), .* acquire\(\)"),
    ("workload raises", working(boom), r"failed in create_workload\(\) for layer 'layer0' .*: ValueError: boom"),
    ("no workload", working(lambda info: None), r"returned None from create_workload.* an object with execute\(\)"),
    (
        "no handle",
        {"tensor_handle_factories": lambda self, memory: (NoHandles(self.factory_id),)},
        r"'Bad' returned None from create_handle\(\) for tensor 'x' of tensor handle factory 'Bad/Factory'",
    ),
    (
        "handle raises",
        {"tensor_handle_factories": lambda self, memory: (BadHandles(self.factory_id),)},
        r"'Bad' failed in create_handle\(\) for tensor 'x' of tensor handle factory 'Bad/Factory': ValueError: boom",
    ),
]


@pytest.mark.parametrize(("case", "attributes", "message"), OPTIMIZING)
def test_while_optimizing(case: str, attributes: dict[str, Any], message: str) -> None:
    del case
    with pytest.raises(BrokenBackendError, match=message) as error:
        optimize(chain(), ["Bad", "CpuRef"], registry_of(mock("Bad", **attributes), CpuRef), PLAIN)
    assert "'Bad'" in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize(("case", "attributes", "message"), LOADING)
def test_while_loading(case: str, attributes: dict[str, Any], message: str) -> None:
    del case
    with Runtime(registry=registry_of(mock("Bad", **attributes), CpuRef)) as runtime:
        optimized = optimize(chain(), ["Bad", "CpuRef"], runtime.registry, PLAIN)
        with pytest.raises(BrokenBackendError, match=message):
            runtime.load_network(optimized)
        number = runtime.load_network(optimize(chain(), ["CpuRef"], runtime.registry, PLAIN))
        runtime.enqueue_workload(number, [sample()])


def test_explaining_asks_with_the_same_care() -> None:
    with pytest.raises(BrokenBackendError, match="'Bad' failed in supports"):
        explain(chain(), [mock("Bad", **supporting(boom))()], OptimizerOptions())


def test_a_context_that_is_none_costs_its_backend() -> None:
    with Runtime(registry=registry_of(mock("Bad", context=lambda self, options: 3), Mock)) as runtime:
        assert "Bad" not in runtime.registry
        (reason,) = [row.reason for row in runtime.backends if row.id == "Bad"]
        assert "expected an object with before_load_network()" in reason


def test_an_error_for_people_passes_as_it_is() -> None:
    def refuse(graph: object, layer: object, target: object) -> Support:
        raise UnsupportedError("the unit is asleep")

    with pytest.raises(UnsupportedError, match=r"^the unit is asleep$"):
        optimize(chain(), ["Bad"], registry_of(mock("Bad", **supporting(refuse))), PLAIN)


def test_while_lowering(tmp_path: Path) -> None:
    bad = mock("Bad", firmware_target=lambda self: Answering(lower=boom))
    message = r"backend 'Bad' failed in lower\(\) for layer 'layer0' \(LEAKY_RELU\): ValueError: boom"
    with pytest.raises(BrokenBackendError, match=message):
        generate(chain(), out=tmp_path / "project", backends=["Bad"], registry=registry_of(bad))
