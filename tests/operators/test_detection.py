# SPDX-License-Identifier: Apache-2.0
"""DETECTION_POSTPROCESS: numpy against TensorFlow Lite Micro and LiteRT, and C against numpy, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from compare import assert_arrays_equal
from flatbuffer_tree import quantization, table, write
from hypothesis import given, settings
from hypothesis import strategies as st
from layer_case import layer_network, tensor
from lowered_call import run_lowered
from numpy.testing import assert_allclose
from oracle import litert_reference, tflm

from ferrule.errors import ModelError, UnsupportedError
from ferrule.formats.tflite import read_tflite
from ferrule.formats.tflite.flexbuffer import write_map
from ferrule.graph import Array, DataType, LayerType, TensorInfo
from ferrule.network import Network
from ferrule.operators.detection import DETECTION_POSTPROCESS, DetectionPostprocessDescriptor
from ferrule.operators.operator import Operands

PLAIN = DetectionPostprocessDescriptor(
    max_detections=4,
    num_classes=2,
    score_threshold=0.5,
    iou_threshold=0.5,
    y_scale=10,
    x_scale=10,
    h_scale=5,
    w_scale=5,
)
OPTIONS: dict[str, float | str] = {
    "max_detections": 4,
    "max_classes_per_detection": 1,
    "num_classes": 2,
    "nms_score_threshold": 0.5,
    "nms_iou_threshold": 0.5,
    "y_scale": 10.0,
    "x_scale": 10.0,
    "h_scale": 5.0,
    "w_scale": 5.0,
}


@st.composite
def detectors(draw: st.DrawFn) -> tuple[Network, list[Array]]:
    """Draw a layer, and inputs with equal scores and boxes that often overlap."""
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    number, classes = draw(st.integers(1, 60)), draw(st.integers(1, 5))
    descriptor = replace(
        PLAIN,
        max_detections=draw(st.integers(1, 12)),
        num_classes=classes,
        score_threshold=float(np.float32(draw(st.sampled_from([0.0, 0.3, 0.9])))),
        iou_threshold=float(np.float32(draw(st.sampled_from([0.2, 0.6, 1.0])))),
        regular=draw(st.booleans()),
        detections_per_class=draw(st.integers(1, 6)),
    )
    shapes = ((1, number, draw(st.sampled_from([4, 6]))), (1, number, classes + draw(st.integers(0, 1))))
    anchors = random.uniform(0.1, 1, (number, 4)).astype(np.float32)
    infos = [tensor(name, shape, DataType.FLOAT32) for name, shape in zip(("boxes", "scores"), shapes, strict=True)]
    infos.append(tensor("anchors", anchors.shape, DataType.FLOAT32))
    steps = draw(st.sampled_from([4, 1000]))
    inputs = [random.normal(0, 2, shapes[0]), random.integers(0, steps, shapes[1]) / steps]
    network = layer_network(LayerType.DETECTION_POSTPROCESS, descriptor, infos, constants={2: anchors})
    return network, [array.astype(np.float32) for array in inputs]


def assert_detections(got: list[Array], wanted: list[Array], relative: float = 0) -> None:
    """Assert that all detections are equal; what lies behind them is not defined by the oracle."""
    count = int(wanted[3].ravel()[0])
    assert got[3][0] == count
    for mine, theirs in zip(got[:3], wanted, strict=False):
        assert_allclose(mine[:, :count], theirs.reshape(mine.shape)[:, :count], rtol=relative)


@pytest.mark.cc
@settings(max_examples=80)
@given(drawn=detectors())
def test_numpy_equals_tflm_and_c_equals_numpy(drawn: tuple[Network, list[Array]]) -> None:
    network, inputs = drawn
    outputs = network.run(inputs)
    assert_detections(outputs, tflm(network, inputs))
    assert_arrays_equal(run_lowered(network, inputs), outputs)


@pytest.mark.cc
def test_boxes_without_an_area_and_numbers_that_are_not_finite() -> None:
    inputs = [np.zeros((1, 6, 4), np.float32), np.full((1, 6, 2), 0.75, np.float32), np.ones((6, 4), np.float32)]
    inputs[0][0, 1:4, 2] = -np.inf, np.inf, np.nan
    inputs[1][0, 4] = np.nan
    inputs[2][5, 3] = -1
    infos = [tensor(name, each.shape, DataType.FLOAT32) for name, each in zip("bsa", inputs, strict=True)]
    for regular in (False, True):
        network = layer_network(LayerType.DETECTION_POSTPROCESS, replace(PLAIN, regular=regular), infos)
        wanted = network.run(inputs)
        assert wanted[3] == 4
        assert_arrays_equal(run_lowered(network, inputs), wanted)


def uint8_model(**options: float | str) -> bytes:
    """Return a model of uint8, as older converters write it: the file has no shapes of the outputs."""
    quantized = quantization([0.05], [100])
    inputs = [
        table("Tensor", Name=name, Shape=np.array(shape, np.int32), Type=3, Buffer=buffer, Quantization=quantized)
        for name, shape, buffer in (("b", (1, 9, 4), 0), ("s", (1, 9, 3), 0), ("a", (9, 4), 1))
    ]
    outputs = [table("Tensor", Name=f"y{index}", Type=0, Buffer=0) for index in range(4)]
    operator = table(
        "Operator",
        OpcodeIndex=0,
        Inputs=np.array([0, 1, 2], np.int32),
        Outputs=np.array([3, 4, 5, 6], np.int32),
        CustomOptions=np.frombuffer(write_map({**OPTIONS, "_output_quantized": True, **options}), np.uint8),
    )
    graph = table(
        "SubGraph",
        Tensors=[*inputs, *outputs],
        Inputs=np.array([0, 1], np.int32),
        Outputs=np.array([3, 4, 5, 6], np.int32),
        Operators=[operator],
    )
    anchors = np.random.default_rng(2).integers(101, 256, 36).astype(np.uint8)
    code = table(
        "OperatorCode", CustomCode="TFLite_Detection_PostProcess", BuiltinCode=32, DeprecatedBuiltinCode=32, Version=1
    )
    tree = table(
        "Model",
        Version=3,
        OperatorCodes=[code],
        Subgraphs=[graph],
        Buffers=[table("Buffer"), table("Buffer", Data=anchors)],
    )
    return write(tree)


@pytest.mark.parametrize("regular", [False, True])
def test_quantised_inputs_stand_for_real_values(regular: bool) -> None:
    model = uint8_model(use_regular_nms=regular)
    network = read_tflite(model, "detector")
    assert [info.dtype for info in network.inputs] == [DataType.UINT8] * 2
    random = np.random.default_rng(3)
    inputs = [random.integers(0, 256, info.shape).astype(np.uint8) for info in network.inputs]
    assert_detections(network.run(inputs), litert_reference(model, inputs), relative=2**-23)  # of a score


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_classes_per_detection": 2}, "write outside of their outputs"),
        ({"nms_iou_threshold": "a"}, "expected a number"),
        ({"nms_iou_threshold": 1e-60}, "expected more than 0 and at most 1"),
        ({"y_scale": float("nan")}, "expected a finite number"),
        ({"num_classes": 7}, "expected .1, 9, 7."),
        ({"max_detections": 1 << 20}, "expected 1 to 32767"),
    ],
)
def test_options_that_are_refused(change: dict[str, float | str], message: str) -> None:
    with pytest.raises((ModelError, UnsupportedError), match=message):
        read_tflite(uint8_model(**change), "detector")


@pytest.mark.parametrize(
    ("boxes", "scores", "anchors", "message"),
    [
        ((2, 9, 4), (1, 9, 2), (9, 4), "expected .1, boxes"),
        ((1, 9, 3), (1, 9, 2), (9, 4), "3 coordinates"),
        ((1, 9, 4), (1, 8, 2), (9, 4), "scores 's'"),
        ((1, 9, 4), (1, 9, 2), (9, 5), "anchors 'a'"),
    ],
)
def test_shapes_that_are_refused(
    boxes: tuple[int, ...], scores: tuple[int, ...], anchors: tuple[int, ...], message: str
) -> None:
    shapes = {"b": boxes, "s": scores, "a": anchors}
    with pytest.raises((ModelError, UnsupportedError), match=message):
        DETECTION_POSTPROCESS.infer(PLAIN, [tensor(name, shape, DataType.FLOAT32) for name, shape in shapes.items()])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda each: replace(each, y_scale=0.0), "y_scale is 0"),
        (lambda each: replace(each, score_threshold=float("inf")), "expected a finite number"),
    ],
)
def test_parameters_that_are_refused(
    change: Callable[[DetectionPostprocessDescriptor], DetectionPostprocessDescriptor], message: str
) -> None:
    shapes = ((1, 9, 4), (1, 9, 2), (9, 4), (1, 4, 4), (1, 4), (1, 4), (1,))
    infos: list[TensorInfo] = [tensor(f"t{index}", shape, DataType.FLOAT32) for index, shape in enumerate(shapes)]
    with pytest.raises(ModelError, match=message):
        DETECTION_POSTPROCESS.check(change(PLAIN), Operands(tuple(infos[:3]), tuple(infos[3:])))
