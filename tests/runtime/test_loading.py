# SPDX-License-Identifier: Apache-2.0
"""Layers between backends have one input and one output, whatever created the graph."""

from __future__ import annotations

import pytest

from ferrule.graph import Layer, LayerType
from ferrule.operators.transfer import MemCopyDescriptor
from ferrule.runtime.errors import NetworkLoadError
from ferrule.runtime.loading import _only_input


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
