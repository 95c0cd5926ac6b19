# SPDX-License-Identifier: Apache-2.0
"""DETECTION_POSTPROCESS in C."""

from __future__ import annotations

from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, descriptor_of
from ferrule.backends.firmware import LoweredOp, LoweringContext
from ferrule.operators.detection import DetectionPostprocessDescriptor

_WORD_BYTES = 4
_WORDS_OF_A_BOX = 5
"""The words of scratch for a box, without its class: four coordinates and a score."""


def lower_detection_postprocess(context: LoweringContext) -> LoweredOp:
    """Return the call for DETECTION_POSTPROCESS."""
    descriptor, scores = descriptor_of(context, DetectionPostprocessDescriptor), context.input(1)
    _, boxes, coordinates = context.source.shape
    words = _WORDS_OF_A_BOX * boxes + max(boxes, descriptor.max_detections)
    fields = {
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
    return KernelCall(
        "detection_postprocess_f32",
        "ferrule/kernels/detection.h",
        fields,
        table="detection_params",
        inputs=range(3),
        sources=("exp",),
        scratch_bytes=words * _WORD_BYTES + boxes,
        scratch_alignment=8,
    ).lowered(context)
