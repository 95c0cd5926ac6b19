# SPDX-License-Identifier: Apache-2.0
"""Layers between backends have one input and one output, whatever created the graph."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from small_networks import int8_input

from ferrule.graph import Layer, LayerType
from ferrule.operators.transfer import MemCopyDescriptor
from ferrule.runtime.errors import NetworkLoadError
from ferrule.runtime.loading import _only_input, _output_ports
from ferrule.runtime.tensors import PlacedTensor


def copy(inputs: tuple[str | None, ...], outputs: tuple[str, ...]) -> Layer:
    return Layer("copy", LayerType.MEM_COPY, MemCopyDescriptor(), inputs=inputs, outputs=outputs)


def test_a_copy_has_one_input() -> None:
    assert _only_input(copy(("x",), ("y",))) == "x"


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [(("x", "z"), ("y",)), ((), ("y",)), ((None,), ("y",)), (("x",), ()), (("x",), ("y", "z"))],
)
def test_other_copies_are_refused(inputs: tuple[str | None, ...], outputs: tuple[str, ...]) -> None:
    with pytest.raises(NetworkLoadError, match="expected one each"):
        _only_input(copy(inputs, outputs))


def test_the_first_port_of_a_computed_tensor_may_use_the_callers_memory() -> None:
    """A second port of the tensor may not, and neither may a port of an imported one."""
    descriptor, x = MemCopyDescriptor(), np.zeros(4, np.int8)
    layers = [
        Layer("copy", LayerType.MEM_COPY, descriptor, inputs=("x",), outputs=("y",)),
        Layer("import", LayerType.MEM_IMPORT, descriptor, inputs=("y",), outputs=("z",)),
    ]
    results = [int8_input(name, 4) for name in ("y", "y", "z")]
    graph = SimpleNamespace(layers=layers, results=results, tensor=lambda name: SimpleNamespace(is_constant=False))
    shared = cast(Any, SimpleNamespace(fits=lambda array: array is x))
    unused = cast(Any, None)
    placed = PlacedTensor(handle=unused, factory=unused, manager=None, managed=False, lent=True, fallback=shared)
    ports = _output_ports(cast(Any, graph), cast(Any, {"y": placed, "z": placed}))
    assert [port._staging is not None and port._staging.serves(x) for port in ports] == [True, False, False]
