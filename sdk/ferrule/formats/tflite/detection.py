# SPDX-License-Identifier: Apache-2.0
"""Reads and writes DETECTION_POSTPROCESS, a custom operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ferrule.errors import ModelError
from ferrule.formats.tflite.flexbuffer import FlexValue
from ferrule.formats.tflite.node import Node, finite
from ferrule.formats.tflite.row import Row, write_custom
from ferrule.graph import Descriptor, LayerType
from ferrule.operators.detection import DetectionPostprocessDescriptor

CODE = "TFLite_Detection_PostProcess"
_INTEGERS = {"max_detections": "max_detections", "num_classes": "num_classes"}
_FLOATS = {
    "nms_score_threshold": "score_threshold",
    "nms_iou_threshold": "iou_threshold",
    "y_scale": "y_scale",
    "x_scale": "x_scale",
    "h_scale": "h_scale",
    "w_scale": "w_scale",
}
_OPTIONAL = {"use_regular_nms": "regular", "detections_per_class": "detections_per_class"}
_CLASSES_OF_A_DETECTION = "max_classes_per_detection"


def _read(node: Node) -> Descriptor:
    """Read the options by key; other keys have no meaning for an interpreter, either."""
    options = node.custom_options()
    missing = [key for key in (*_INTEGERS, *_FLOATS, _CLASSES_OF_A_DETECTION) if key not in options]
    if missing:
        raise ModelError(f"its custom options have no '{missing[0]}'")
    if _number(options, _CLASSES_OF_A_DETECTION) != 1:
        raise ModelError(
            f"its option '{_CLASSES_OF_A_DETECTION}' is {options[_CLASSES_OF_A_DETECTION]}, expected 1: with more, the "
            "reference kernels write outside of their outputs"
        )
    values: dict[str, Any] = {name: int(_number(options, key)) for key, name in _INTEGERS.items()}
    with np.errstate(over="ignore"):
        values |= {name: finite(float(np.float32(_number(options, key))), key) for key, name in _FLOATS.items()}
    for key, name in _OPTIONAL.items():
        if key in options:
            value = _number(options, key)
            values[name] = bool(value) if name == "regular" else int(value)
    return DetectionPostprocessDescriptor(**values)


def _number(options: Mapping[str, FlexValue], key: str) -> float:
    value = options[key]
    if isinstance(value, str):
        raise ModelError(f"its option '{key}' is '{value}', expected a number")
    return finite(value, key)


ROWS: Mapping[LayerType, Row] = {
    LayerType.DETECTION_POSTPROCESS: Row(
        read=_read,
        write=write_custom(CODE, {_CLASSES_OF_A_DETECTION: 1}, **_INTEGERS, **_FLOATS, **_OPTIONAL),
        data_inputs=range(3),
        inputs=range(3, 4),
        outputs=range(4, 5),
        custom=CODE,
        real_inputs=True,
        infers_outputs=True,
    ),
}
"""The operator of this module."""
