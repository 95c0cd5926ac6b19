# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's pictures of handwritten digits, as the scripts of tests/exporters train with them."""

from __future__ import annotations

import numpy as np
from onnx_storage import Array


def digits() -> tuple[Array, Array]:
    """Return the pictures, N x 1 x 8 x 8 between 0 and 1, and their labels, both shuffled."""
    from sklearn.datasets import load_digits

    loaded = load_digits()
    order = np.random.default_rng(0).permutation(len(loaded.target))
    return (loaded.images[order, None] / 16).astype(np.float32), loaded.target[order]
