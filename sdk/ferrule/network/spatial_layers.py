# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which resize images."""

from __future__ import annotations

from ferrule.network.builder import LayerBuilder, adding
from ferrule.operators.operator import Operator
from ferrule.operators.spatial.resize import RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR, ResizeDescriptor


class SpatialLayers(LayerBuilder):
    """Methods that add layers over the height and width of NHWC images; the outputs keep the input's quantisation.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor. Pairs are (height, width). If a layer is not valid, the method raises
    ModelError or UnsupportedError with the reason and adds nothing.
    """

    def _add_resize(
        self,
        row: Operator,
        source: str,
        size: tuple[int, int],
        *,
        align_corners: bool = False,
        half_pixel_centers: bool = False,
        name: str | None = None,
    ) -> str:
        descriptor = ResizeDescriptor(
            height=size[0], width=size[1], align_corners=align_corners, half_pixel_centers=half_pixel_centers
        )
        return self._append_like(source, descriptor, name=name, row=row)

    add_resize_nearest_neighbor_layer = adding(
        RESIZE_NEAREST_NEIGHBOR,
        _add_resize,
        "Add RESIZE_NEAREST_NEIGHBOR to a new size: each pixel is the nearest one of the image.",
    )
    add_resize_bilinear_layer = adding(
        RESIZE_BILINEAR,
        _add_resize,
        "Add RESIZE_BILINEAR to a new size: each pixel is interpolated between four pixels of the image.",
    )
