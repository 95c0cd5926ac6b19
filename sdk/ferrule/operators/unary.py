# SPDX-License-Identifier: Apache-2.0
"""Functions shared by operators with one input."""

from __future__ import annotations

from ferrule.errors import UnsupportedError
from ferrule.graph import TensorInfo


def check_per_tensor(*infos: TensorInfo) -> None:
    """Refuse integer tensors without a scale or with more than one scale."""
    for info in infos:
        if info.dtype.is_float:
            continue
        if info.quantization is None:
            raise UnsupportedError(f"tensor '{info.name}' is {info.dtype} without quantisation, expected a scale")
        if info.quantization.per_channel:
            raise UnsupportedError(
                f"tensor '{info.name}' has {len(info.quantization.scales)} scales, expected one for the tensor"
            )
