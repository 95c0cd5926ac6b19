# SPDX-License-Identifier: Apache-2.0
"""The method that adds the last layer of an object detector."""

from __future__ import annotations

from ferrule.graph import Array
from ferrule.network.builder import Constant, LayerBuilder
from ferrule.operators.detection import DetectionPostprocessDescriptor


class DetectionLayers(LayerBuilder):
    """Methods that add layers of object detectors."""

    def add_detection_postprocess_layer(
        self,
        boxes: str,
        scores: str,
        anchors: Array,
        *,
        max_detections: int,
        num_classes: int,
        score_threshold: float,
        iou_threshold: float,
        scales: tuple[float, float, float, float],
        regular: bool = False,
        detections_per_class: int = 100,
        name: str | None = None,
    ) -> tuple[str, str, str, str]:
        """Add DETECTION_POSTPROCESS of float32, and return its boxes, classes, scores and their number.

        `boxes` are [1, N, 4], as (y, x, height, width) relative to the anchors [N, 4] and times `scales`; `scores` are
        [1, N, classes]. A detection overlaps each better one by at most `iou_threshold`. With `regular`, classes are
        selected one by one. If a check fails, the method raises ModelError or UnsupportedError and adds nothing.
        """
        descriptor = DetectionPostprocessDescriptor(
            max_detections=max_detections,
            num_classes=num_classes,
            score_threshold=score_threshold,
            iou_threshold=iou_threshold,
            y_scale=scales[0],
            x_scale=scales[1],
            h_scale=scales[2],
            w_scale=scales[3],
            regular=regular,
            detections_per_class=detections_per_class,
        )
        places = Constant(role="anchors", data=anchors)
        first, second, third, fourth = self._append(descriptor, [boxes, scores, places], name=name, outputs=4)
        return first, second, third, fourth
