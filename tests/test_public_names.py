# SPDX-License-Identifier: Apache-2.0
"""The public names are a promise: a change here is a change of the API that somebody approved."""

from __future__ import annotations

import ferrule

NAMES = {
    "DataType",
    "FerruleError",
    "Firmware",
    "Network",
    "Quantization",
    "RunReport",
    "TensorInfo",
    "Verdict",
    "__version__",
    "compile",
    "load",
}


def test_names() -> None:
    assert set(ferrule.__all__) == NAMES


def test_every_name_can_be_imported() -> None:
    for name in ferrule.__all__:
        assert getattr(ferrule, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(ferrule, "nothing_of_the_kind")
