# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers which resize images."""

from __future__ import annotations

from ferrule.graph import LayerType
from ferrule.network.builder import LayerBuilder
from ferrule.operators.resize import ResizeDescriptor


class SpatialLayers(LayerBuilder):
    """Methods that add layers over the height and width of NHWC images; the outputs keep the input's quantisation.

    Each method returns the name of the output tensor, which is also the layer's name: `name`, or a name derived from
    the operator. `source` names the input tensor. Pairs are (height, width). If a layer is not valid, the method raises
    ModelError or UnsupportedError with the reason and adds nothing.
    """

    def add_resize_nearest_neighbor_layer(
        self,
        source: str,
        size: tuple[int, int],
        *,
        align_corners: bool = False,
        half_pixel_centers: bool = False,
        name: str | None = None,
    ) -> str:
        """Add RESIZE_NEAREST_NEIGHBOR to a new size: each pixel is the nearest one of the image."""
        return self._add_resize(
            LayerType.RESIZE_NEAREST_NEIGHBOR, source, size, align_corners, half_pixel_centers, name
        )

    def add_resize_bilinear_layer(
        self,
        source: str,
        size: tuple[int, int],
        *,
        align_corners: bool = False,
        half_pixel_centers: bool = False,
        name: str | None = None,
    ) -> str:
        """Add RESIZE_BILINEAR to a new size: each pixel is interpolated between four pixels of the image."""
        return self._add_resize(LayerType.RESIZE_BILINEAR, source, size, align_corners, half_pixel_centers, name)

    def _add_resize(
        self,
        type_: LayerType,
        source: str,
        size: tuple[int, int],
        align_corners: bool,
        half_pixel_centers: bool,
        name: str | None,
    ) -> str:
        descriptor = ResizeDescriptor(
            height=size[0], width=size[1], align_corners=align_corners, half_pixel_centers=half_pixel_centers
        )
        quantization = self.info(source).quantization
        return self._append(type_, descriptor, [source], name=name, quantization=quantization)[0]
