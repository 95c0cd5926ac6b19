# SPDX-License-Identifier: Apache-2.0
"""Activations that can be fused into other operators."""

from __future__ import annotations

from enum import StrEnum

from ferrule.graph import Descriptor


class Activation(StrEnum):
    """A clamp applied to an operator's result, with its TensorFlow Lite name."""

    NONE = "NONE"
    RELU = "RELU"
    RELU6 = "RELU6"
    RELU_N1_TO_1 = "RELU_N1_TO_1"

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """Lower and upper limit as real numbers; None for no limit."""
        return _LIMITS[self]


_LIMITS: dict[Activation, tuple[float | None, float | None]] = {
    Activation.NONE: (None, None),
    Activation.RELU: (0.0, None),
    Activation.RELU6: (0.0, 6.0),
    Activation.RELU_N1_TO_1: (-1.0, 1.0),
}


def fused_activation(descriptor: Descriptor) -> Activation | None:
    """Return the activation that is fused into a layer; None if its operator has none."""
    return getattr(descriptor, "activation", None)
