# SPDX-License-Identifier: Apache-2.0
"""DETECTION_POSTPROCESS in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.stateful import stateful_call
from ferrule.backends.firmware import FieldValue, LoweredOp, LoweringContext
from ferrule.errors import UnsupportedError
from ferrule.operators.detection import DetectionPostprocessDescriptor

_WORD_BYTES = 4
_WORDS_OF_A_BOX = 5
"""The words of scratch for a box, without its class: four coordinates and a score."""


def lower_detection_postprocess(context: LoweringContext) -> LoweredOp:
    """Return the call for DETECTION_POSTPROCESS."""
    descriptor, scores = context.layer.descriptor, context.input(1)
    if not isinstance(descriptor, DetectionPostprocessDescriptor):
        raise UnsupportedError(f"layer '{context.layer.name}' has a {type(descriptor).__name__}")
    _, boxes, coordinates = context.input(0).shape
    fields: dict[str, FieldValue] = {
        "boxes": boxes,
        "coordinates": coordinates,
        "classes": descriptor.num_classes,
        "background": scores.shape[2] - descriptor.num_classes,
        "most": descriptor.max_detections,
        "most_of_a_class": descriptor.detections_per_class,
        "regular": descriptor.regular,
        "y_scale": descriptor.y_scale,
        "x_scale": descriptor.x_scale,
        "h_scale": descriptor.h_scale,
        "w_scale": descriptor.w_scale,
        "score_threshold": descriptor.score_threshold,
        "iou_threshold": descriptor.iou_threshold,
    }
    words = _WORDS_OF_A_BOX * boxes + max(boxes, descriptor.max_detections)
    return stateful_call(
        context,
        "detection_postprocess_f32",
        fields,
        header="detection",
        table="detection_params",
        inputs=(0, 1, 2),
        states={},
        sources=("exp",),
        scratch_bytes=words * _WORD_BYTES + boxes,
    )
