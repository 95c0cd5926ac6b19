# SPDX-License-Identifier: Apache-2.0
"""FULLY_CONNECTED."""

from __future__ import annotations

from dataclasses import dataclass

from ferrule.graph import Descriptor
from ferrule.operators.activation import Activation


@dataclass(frozen=True, slots=True, kw_only=True)
class FullyConnectedDescriptor(Descriptor):
    """Inputs: data whose elements are a multiple of D, weights [O, D], optional bias [O]. One output."""

    keep_num_dims: bool = False
    """The output keeps all dimensions of the input but the last; else it is [batch, O]."""
    activation: Activation = Activation.NONE
