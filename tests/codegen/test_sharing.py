# SPDX-License-Identifier: Apache-2.0
"""Equal constants of several layers, which flash holds once."""

from __future__ import annotations

import numpy as np
import pytest

import ferrule
from ferrule.backends.firmware import Blob, LoweredOp
from ferrule.codegen.sharing import stored_bytes, with_shared_constants
from ferrule.dom import Assign, Identifier, Index, unsigned

Values = np.ndarray


def op_of(*blobs: Blob) -> LoweredOp:
    statements = tuple(Assign(Identifier("x"), Index(Identifier(each.name), unsigned(0))) for each in blobs)
    return LoweredOp(kernel="k", statements=statements, blobs=blobs)


def blob(name: str, values: Values, alignment: int = 4) -> Blob:
    return Blob(name=name, data=values, alignment=alignment)


def test_equal_constants_are_one_with_the_largest_alignment() -> None:
    ones = np.ones(8, np.int8)
    first, second = with_shared_constants(
        [op_of(blob("a", ones)), op_of(blob("b", ones.copy(), 16), blob("c", ones * 2))]
    )
    assert first.blobs[0] is second.blobs[0]
    assert (first.blobs[0].name, first.blobs[0].alignment) == ("a", 16)
    assert [each.name for each in second.blobs] == ["a", "c"]
    assert second.statements == op_of(blob("a", ones), blob("c", ones)).statements
    assert stored_bytes({"one": first.blobs, "other": second.blobs}) == {"one": 8, "other": 8}


@pytest.mark.parametrize(
    "other", [np.full(8, 2, np.int8), np.ones(9, np.int8), np.ones(8, np.uint8), np.full(2, 0x01010101, np.int32)]
)
def test_constants_of_another_type_or_other_values_stay_apart(other: Values) -> None:
    ops = [op_of(blob("a", np.ones(8, np.int8))), op_of(blob("b", other))]
    assert all(new is old for new, old in zip(with_shared_constants(ops), ops, strict=True)), "and nothing is changed"


def test_zeros_of_both_signs_stay_apart() -> None:
    ops = [op_of(blob("a", np.float32([0.0]))), op_of(blob("b", np.float32([-0.0])))]
    assert [each.blobs[0].name for each in with_shared_constants(ops)] == ["a", "b"]


def twins(*, equal: bool) -> ferrule.Network:
    """Return a network of two dense layers on one input, of equal or of other weights."""
    network = ferrule.Network("twins")
    network.add_input(ferrule.TensorInfo("x", (1, 32), ferrule.DataType.FLOAT32))
    weights = np.random.default_rng(5).normal(size=(64, 32)).astype(np.float32)
    names = [network.add_fully_connected_layer("x", weights * (1 if equal else n), name=f"d{n}") for n in (1, 2)]
    network.set_outputs(names)
    return network


def test_a_firmware_has_equal_weights_once_and_computes_the_same() -> None:
    firmware = [ferrule.compile(twins(equal=equal), board="mps2-an386") for equal in (True, False)]
    reports = [each.run() for each in firmware]
    weights = [report.memory.flash.weights for report in reports if report.memory.flash is not None]
    assert weights[1] - weights[0] == 4 * 64 * 33
    assert all(report.verdict is ferrule.Verdict.EXACT for report in reports)
    assert [layer.constant_bytes for layer in reports[0].layers] == [4 * 64 * 33, 0]
    assert "Of layers 'd1', 'd2'." in firmware[0].artifact.files["ferrule_twins_weights.h"]
