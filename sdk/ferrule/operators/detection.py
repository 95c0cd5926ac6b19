# SPDX-License-Identifier: Apache-2.0
"""DETECTION_POSTPROCESS: decodes the boxes of an object detector and selects the best ones that overlap little."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, LayerType
from ferrule.operators.arithmetic.error_bound import known_inputs, rounding
from ferrule.operators.movement.checks import expect_type
from ferrule.operators.operator import Arrays, Evaluation, Operands, Operator, Shapes, required_arrays
from ferrule.operators.sample import LayerSample

_COORDINATES = 4
_SCALES = ("y_scale", "x_scale", "h_scale", "w_scale")


@frozen
class DetectionPostprocessDescriptor(Descriptor):
    """Inputs: encoded boxes [1, N, 4 or more], scores [1, N, classes], anchors [N, 4], each as (y, x, height, width).

    Outputs: boxes [1, M, 4] as (top, left, bottom, right), classes [1, M], scores [1, M], their number [1]. M is
    `max_detections`; what lies behind the number is 0.
    """

    max_detections: int
    num_classes: int
    """The classes without the background, which is the first one of the scores if these have one more."""
    score_threshold: float
    """The lowest score of a detection, as a float32."""
    iou_threshold: float
    """The largest overlap of two detections, as a float32: the area of their intersection over that of their union."""
    y_scale: float
    x_scale: float
    h_scale: float
    w_scale: float
    regular: bool = False
    """Whether classes are selected one by one; otherwise a box has only its best class."""
    detections_per_class: int = 100
    """The most detections of a class, if classes are selected one by one."""


def _infer(descriptor: DetectionPostprocessDescriptor, operands: Operands) -> Shapes:
    boxes, scores, anchors = operands.required(range(3))
    for info in (boxes, scores):
        if len(info.shape) != 3 or info.shape[0] != 1:
            raise UnsupportedError(f"tensor '{info.name}' has shape {list(info.shape)}, expected [1, boxes, ...]")
    number = boxes.shape[1]
    if boxes.shape[2] < _COORDINATES:
        raise ModelError(f"boxes '{boxes.name}' have {boxes.shape[2]} coordinates, expected 4 or more")
    if anchors.shape != (number, _COORDINATES):
        raise ModelError(f"anchors '{anchors.name}' have shape {list(anchors.shape)}, expected {[number, 4]}")
    classes = descriptor.num_classes
    if scores.shape[1] != number or scores.shape[2] not in {classes, classes + 1}:
        raise ModelError(
            f"scores '{scores.name}' have shape {list(scores.shape)}, expected [1, {number}, {classes}], or one class "
            "more for the background"
        )
    most = descriptor.max_detections
    return (1, most, _COORDINATES), (1, most), (1, most), (1,)


def _check(descriptor: DetectionPostprocessDescriptor, operands: Operands) -> None:
    for info in (*operands.required(range(3)), *operands.outputs):
        expect_type(info, DataType.FLOAT32)
    for role in ("max_detections", "num_classes", "detections_per_class"):
        if not 0 < getattr(descriptor, role) < 1 << 15:
            raise ModelError(f"{role} is {getattr(descriptor, role)}, expected 1 to 32767")
    for role in _SCALES:
        if not math.isfinite(1 / getattr(descriptor, role) if getattr(descriptor, role) else math.inf):
            raise ModelError(f"{role} is {getattr(descriptor, role)}, expected a number other than 0")
    if not 0 < descriptor.iou_threshold <= 1:
        raise ModelError(f"iou_threshold is {descriptor.iou_threshold}, expected more than 0 and at most 1")
    if not math.isfinite(descriptor.score_threshold):
        raise ModelError(f"score_threshold is {descriptor.score_threshold}, expected a finite number")


def _kernel(descriptor: DetectionPostprocessDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    encoded, scores, anchors = required_arrays(arrays, range(3))
    with np.errstate(all="ignore"):
        boxes = _decoded(descriptor, encoded[0, :, :_COORDINATES], anchors)
        found = list(
            (_regular if descriptor.regular else _fast)(descriptor, boxes, _without_background(descriptor, scores))
        )
    most = descriptor.max_detections
    chosen, classes, best = (np.zeros(shape, np.float32) for shape in ((1, most, _COORDINATES), (1, most), (1, most)))
    for index, (place, class_, score) in enumerate(found):
        chosen[0, index], classes[0, index], best[0, index] = boxes[place], class_, score
    return [chosen, classes, best, np.array([len(found)], np.float32)]


def _reads(descriptor: DetectionPostprocessDescriptor, operands: Operands) -> int:
    """Return the boxes' coordinates that are compared: each box that is chosen with all that are left."""
    chosen = (
        descriptor.num_classes * descriptor.detections_per_class if descriptor.regular else descriptor.max_detections
    )
    boxes = operands.source.shape[1]
    return _COORDINATES * boxes * min(chosen, boxes * descriptor.num_classes)


def _without_background(descriptor: DetectionPostprocessDescriptor, scores: Array) -> Array:
    return scores[0, :, scores.shape[2] - descriptor.num_classes :]


def _decoded(descriptor: DetectionPostprocessDescriptor, encoded: Array, anchors: Array) -> Array:
    """Return (top, left, bottom, right) of each box; float32 numbers are computed in float64, and then added."""
    scales = np.array([getattr(descriptor, role) for role in _SCALES], np.float64)
    values, known = encoded.astype(np.float64) / scales, anchors.astype(np.float64)
    centres = (values[:, :2] * known[:, 2:] + known[:, :2]).astype(np.float32)
    halves = (0.5 * np.exp(values[:, 2:]) * known[:, 2:]).astype(np.float32)
    return np.concatenate([centres - halves, centres + halves], axis=1)


def _fast(
    descriptor: DetectionPostprocessDescriptor, boxes: Array, scores: Array
) -> Iterator[tuple[int, int, np.float32]]:
    """Yield (box, class, score) of the selected boxes, each with its best class."""
    classes = np.zeros(len(boxes), np.int64)
    best = scores[:, 0].copy()
    for class_ in range(1, scores.shape[1]):
        better = scores[:, class_] > best
        classes[better], best[better] = class_, scores[better, class_]
    for place in _selected(descriptor, boxes, best, descriptor.max_detections):
        yield place, int(classes[place]), best[place]


def _regular(
    descriptor: DetectionPostprocessDescriptor, boxes: Array, scores: Array
) -> list[tuple[int, int, np.float32]]:
    """Return (box, class, score) of the best boxes of all classes; of equal scores, the first class comes first."""
    found = [
        (place, class_, scores[place, class_])
        for class_ in range(scores.shape[1])
        for place in _selected(descriptor, boxes, scores[:, class_], descriptor.detections_per_class)
    ]
    return sorted(found, key=lambda each: -each[2])[: descriptor.max_detections]


def _selected(descriptor: DetectionPostprocessDescriptor, boxes: Array, scores: Array, most: int) -> Iterator[int]:
    """Yield at most `most` boxes, the best ones first, without those that overlap a better one."""
    (left,) = np.nonzero(scores >= np.float32(descriptor.score_threshold))
    left = left[np.argsort(-scores[left], kind="stable")]
    for _ in range(most):
        if not left.size:
            return
        yield int(left[0])
        overlaps = _overlap(boxes[left[0]], boxes[left[1:]])
        left = left[1:][~(overlaps > np.float32(descriptor.iou_threshold))]


def _overlap(box: Array, others: Array) -> Array:
    """Return the area of the intersection with each other box over that of the union, or 0 if a box has no area."""
    own = (box[2] - box[0]) * (box[3] - box[1])
    areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
    # Not np.maximum and np.minimum, which return a NaN in either operand: the reference compares, as std::max does.
    begin = np.where(box[:2] < others[:, :2], others[:, :2], box[:2])
    end = np.where(others[:, 2:] < box[2:], others[:, 2:], box[2:])
    sides = end - begin
    common = np.where(sides < 0, np.float32(0), sides).prod(axis=1)
    return np.where((own <= 0) | (areas <= 0), np.float32(0), common / (own + areas - common))


def _sample(sample: LayerSample) -> Descriptor:
    dice, dtype = sample.dice, sample.dtype
    number, classes = dice.randint(1, 20), dice.randint(1, 4)
    for shape in ((1, number, dice.choice([4, 4, 5])), (1, number, classes + dice.randint(0, 1))):
        sample.take(shape)
    anchors = sample.array((number, 4), dtype)
    if dtype.is_float:
        anchors[:, 2:] = 0.1 + np.abs(anchors[:, 2:])
    sample.hold("anchors", anchors)
    return DetectionPostprocessDescriptor(
        max_detections=dice.randint(1, 12),
        num_classes=classes,
        score_threshold=dice.choice([-1.0, 0.0, 0.5]),
        iou_threshold=dice.choice([0.25, 0.5, 1.0]),
        y_scale=dice.choice([1.0, 10.0]),
        x_scale=10.0,
        h_scale=5.0,
        w_scale=dice.choice([1.0, 5.0]),
        regular=dice.random() < 0.5,
        detections_per_class=dice.randint(1, 5),
    )


def _bound(evaluation: Evaluation) -> list[Array]:
    """Return that of the boxes, half of whose sides are rounded; detections of other inputs may be others."""
    boxes, *others = known_inputs(evaluation)
    if evaluation.is_exact:
        sides = np.abs(evaluation.outputs[0].astype(np.float64))
        boxes = rounding(evaluation, sides + sides[..., [2, 3, 0, 1]], 2)
    return [boxes, *others]


DETECTION_POSTPROCESS = Operator(
    descriptor=DetectionPostprocessDescriptor,
    type=LayerType.DETECTION_POSTPROCESS,
    shapes=_infer,
    check=_check,
    kernel=_kernel,
    bound=_bound,
    reads=_reads,
    sample=_sample,
)
