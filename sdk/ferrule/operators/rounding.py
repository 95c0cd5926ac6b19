# SPDX-License-Identifier: Apache-2.0
"""Rounding of floating-point arrays to whole numbers."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Floating = TypeVar("_Floating", bound=np.floating[Any])


def round_half_away(values: NDArray[_Floating]) -> NDArray[_Floating]:
    """Return the nearest whole numbers in the same type, with halves rounded away from zero, like C's round()."""
    whole = np.trunc(values)
    away = whole + np.copysign(1, values).astype(values.dtype)
    return np.asarray(np.where(np.abs(values - whole) >= 0.5, away, whole), values.dtype)
