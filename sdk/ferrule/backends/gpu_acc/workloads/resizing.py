# SPDX-License-Identifier: Apache-2.0
"""Workloads of RESIZE_BILINEAR."""

from __future__ import annotations

import numpy as np

from ferrule.backends.gpu_acc.parameters import ResizeParameters
from ferrule.backends.gpu_acc.workloads.launch import KernelWorkload, Launch, Loading
from ferrule.graph import Array
from ferrule.operators.spatial.resize import ResizeDescriptor, Taps, float_taps, integer_taps


def resize_bilinear(loading: Loading) -> KernelWorkload:
    """Return the workload of a RESIZE_BILINEAR layer."""
    descriptor, operands = loading.info.layer.descriptor, loading.info.operands
    assert isinstance(descriptor, ResizeDescriptor)
    image, output = operands.input(0), operands.output
    find = float_taps if output.dtype.is_float else integer_taps
    sides = zip(image.shape[1:3], output.shape[1:3], strict=True)
    rows, columns = (_table(find(descriptor, extent, count)) for extent, count in sides)
    parameters = ResizeParameters(
        elements=output.elements,
        height=image.shape[1],
        width=image.shape[2],
        channels=image.shape[3],
        output_height=output.shape[1],
        output_width=output.shape[2],
    )
    launch = Launch(
        kernel=f"resize_bilinear_{'f32' if output.dtype.is_float else 's8'}",
        parameters=parameters,
        constants=(rows, columns),
        items=(output.elements,),
    )
    return KernelWorkload(loading, launch)


def _table(taps: Taps) -> Array:
    """Return the two pixels and the weight of the second one, a float32 by its bits, of each output pixel."""
    weight = taps.weight
    bits = weight.astype(np.float32).view(np.int32) if weight.dtype.kind == "f" else weight
    return np.stack([taps.lower, taps.upper, bits], axis=-1).astype(np.int32)
