# SPDX-License-Identifier: Apache-2.0
"""LayerNormalization of quantised ONNX models: one layer of integers, or layers of float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from needs import require_module
from onnx_models import count, drawn, load, model, node
from oracle import onnxruntime_outputs

from ferrule import formats
from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.writer import to_tflite
from ferrule.graph import Array, LayerType, Rounding


def points(dtype: str) -> dict[str, Array]:
    """Return the scales and zero points of an input and an output."""
    low = np.iinfo(dtype).min
    scales = {"sx": np.array(0.023, np.float32), "sy": np.array(0.031, np.float32)}
    return scales | {"zx": np.array(low + 117, dtype), "zy": np.array(low + 101, dtype)}


NUMBERS: dict[str, Any] = {
    "g": np.linspace(0.6, 1.4, 16, dtype=np.float32),
    "b": np.linspace(-0.5, 0.7, 16, dtype=np.float32),
    "large": np.full(16, 1e9, np.float32),
    "image": np.ones((8, 16), np.float32),
    "one": np.full(1, 1.25, np.float32),
    "epsilon": np.float32(1e-5),
    "negative": np.float32(-1e-9),
    "two": np.float32(2),
    "three": np.float32(3),
    "last": np.array([-1]),
    "before": np.array([-2]),
    "shape": np.array([1, 6, 8, 16]),
}


def between(
    dtype: str,
    nodes: Sequence[Any],
    outputs: Sequence[str] = ("y",),
    opset: int = 21,
    more: Mapping[str, Array] | None = None,
) -> Any:  # noqa: ANN401
    """Return nodes that make `r` of the 6 x 8 rows of 16 of `d`, between conversions."""
    before = [node("QuantizeLinear", "x sx zx", "q"), node("DequantizeLinear", "q sx zx", "d")]
    behind = [node("QuantizeLinear", "r sy zy", "p"), node("DequantizeLinear", "p sy zy", "y")]
    inputs = {"x": ("float32", [1, 6, 8, 16])}
    return model([*before, *nodes, *behind], inputs, outputs, {**points(dtype), **NUMBERS, **(more or {})}, opset)


def normalised(dtype: str, *constants: str, **attributes: Any) -> Any:  # noqa: ANN401
    """Return a LayerNormalization between conversions."""
    return between(dtype, [node("LayerNormalization", f"d {' '.join(constants)}", "r", **attributes)])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("constants", [("g",), ("g", "b")])
def test_layer_normalisation_is_one_layer_of_integers(dtype: str, constants: Sequence[str]) -> None:
    made = normalised(dtype, *constants)
    network = load(made)
    assert count(network, LayerType.LAYER_NORMALIZATION) == 1
    (layer,) = [each for each in network.layers if each.type is LayerType.LAYER_NORMALIZATION]
    assert layer.rounding is Rounding.ONNX
    written = formats.load(made.SerializeToString(), onnx_arithmetic="as-written")
    assert count(written, LayerType.LAYER_NORMALIZATION) == 0
    assert count(written, LayerType.RSQRT) == 1
    feeds = drawn(network)
    (got,), (wanted,) = network.run(dict(feeds)), onnxruntime_outputs(made, feeds)
    steps = (wanted - got) / 0.031
    far = np.abs(_normalised_in_steps(feeds["x"], dtype, with_bias="b" in constants) % 1 - 0.5) > 1 / 128
    assert far.mean() > 0.9
    assert not steps[far].any(), "nothing differs from onnxruntime where the real number is not near a half"
    assert np.abs(steps).max() < 1.5


def _normalised_in_steps(data: Array, dtype: str, *, with_bias: bool) -> Array:
    """Return the real results in steps of the output."""
    zero, limits = points(dtype)["zx"].astype(np.float64), np.iinfo(dtype)
    stored = np.clip(np.rint(data / np.float32(0.023)) + zero, limits.min, limits.max)
    values = (stored - zero) * np.float64(np.float32(0.023))
    centred = values - values.mean(axis=-1, keepdims=True)
    normal = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + 1e-5)
    gamma, beta = np.linspace(0.6, 1.4, 16, dtype=np.float32), np.linspace(-0.5, 0.7, 16, dtype=np.float32)
    return np.asarray((normal * gamma + (beta if with_bias else 0)) / np.float64(np.float32(0.031)))


@pytest.mark.parametrize(
    ("constants", "attributes"),
    [(("image",), {"axis": 2}), (("large",), {}), (("g",), {"epsilon": 1e30}), (("one",), {}), (("g", "one"), {})],
)
def test_other_layer_normalisations_stay_float32(constants: Sequence[str], attributes: Mapping[str, Any]) -> None:
    network = load(normalised("int8", *constants, **attributes))
    assert count(network, LayerType.LAYER_NORMALIZATION) == 0
    assert count(network, LayerType.RSQRT) == 1


def test_a_layer_of_integers_is_not_one_of_tensorflow_lite() -> None:
    made = normalised("int8", "g")
    with pytest.raises(UnsupportedError, match="'LayerNormalization_r': LAYER_NORMALIZATION cannot") as caught:
        to_tflite(load(made), rounding=Rounding.TFLM)
    assert caught.value.hint == 'onnx_arithmetic="as-written" reads it as layers of float32 that can'
    written = formats.load(made.SerializeToString(), onnx_arithmetic="as-written")
    assert to_tflite(written, rounding=Rounding.TFLM)


DECOMPOSED = {
    "u": "ReduceMean d last",
    "c": "Sub d u",
    "s": "Pow c two",
    "v": "ReduceMean s last",
    "e": "Add v epsilon",
    "t": "Sqrt e",
    "n": "Div c t",
    "a": "Mul n g",
    "r": "Add a b",
}
"""What PyTorch writes for a LayerNormalization before opset 17: the operator and the inputs, by output."""
AGAIN = {"u2": "ReduceMean d last", "c2": "Sub d u2"}
"""A second difference from the means."""


def decomposed(dtype: str = "int8", outputs: Sequence[str] = ("y",), opset: int = 21, **changed: str) -> Any:  # noqa: ANN401
    """Return a normalisation as single operators between conversions, some of them changed or added."""
    nodes = []
    for output, text in (dict.fromkeys([*AGAIN, *DECOMPOSED], "") | DECOMPOSED | changed).items():
        op, _, inputs = text.partition(" ")
        attributes = {"axes": [-1]} if op == "ReduceMean" and opset < 18 else {}
        names = inputs.removesuffix(" last") if attributes else inputs
        nodes += [node(op, names, output, **attributes)] if op else []
    return between(dtype, nodes, outputs, opset)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"s": "Mul c c"},
        {"e": "Add epsilon v"},
        {"a": "Mul g n"},
        {"r": "Add b a"},
        {**AGAIN, "s": "Pow c2 two"},
        {**AGAIN, "n": "Div c2 t", "s": "Mul c c"},
        {"c2": "Reshape d shape", "u": "ReduceMean c2 last", "c": "Sub c2 u"},
    ],
)
def test_a_normalisation_of_single_operators_is_the_same_layer(dtype: str, changed: Mapping[str, str]) -> None:
    whole, network = load(normalised(dtype, "g", "b")), load(decomposed(dtype, **changed))
    assert count(network, LayerType.LAYER_NORMALIZATION) == 1
    assert not {each.type for each in network.layers} & {LayerType.MEAN, LayerType.SUB, LayerType.DIV, LayerType.SQRT}
    feeds = drawn(network)
    (got,), (wanted,) = network.run(dict(feeds)), whole.run(dict(feeds))
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("opset", [13, 17])
def test_axes_may_be_attributes(opset: int) -> None:
    network = load(decomposed(opset=opset))
    assert [each.type for each in network.layers] == [each.type for each in load(decomposed()).layers]
    (whole,) = load(normalised("int8", "g", "b")).run(feeds := dict(drawn(network)))
    assert network.run(feeds)[0].tobytes() == whole.tobytes()


def test_single_operators_stay_as_written() -> None:
    written = formats.load(decomposed().SerializeToString(), onnx_arithmetic="as-written")
    assert count(written, LayerType.LAYER_NORMALIZATION) == 0
    assert count(written, LayerType.DIV) == 1


@pytest.mark.parametrize(
    ("outputs", "changed"),
    [
        (("y", "n"), {}),
        (("y", "r"), {}),
        (("y", "u"), {}),
        (("y", "z"), {"z": "Relu v"}),
        (("y",), {"s": "Pow c three"}),
        (("y",), {"s": "Mul c d"}),
        (("y",), {"u": "ReduceMean d before"}),
        (("y",), {"v": "ReduceMean s before"}),
        (("y",), {"c": "Sub u d"}),
        (("y",), {"c2": "Abs d", "n": "Div c2 t"}),
        (("y",), {"n": "Div t c"}),
        (("y",), {"e": "Add v g"}),
        (("y",), {"e": "Add v negative"}),
        (("y",), {"t": "Abs e"}),
        (("y",), {"a": "Mul n image"}),
        (("y",), {"a": "Mul n n"}),
        (("y",), {"r": "Add a image"}),
        (("y",), {"r": "Relu a"}),
        (("y",), {"c2": "Relu d", "u": "ReduceMean c2 last", "c": "Sub c2 u"}),
    ],
)
def test_other_groups_of_operators_stay_float32(outputs: Sequence[str], changed: Mapping[str, str]) -> None:
    network = load(decomposed(outputs=outputs, **changed))
    assert count(network, LayerType.LAYER_NORMALIZATION) == 0
    assert count(network, LayerType.RSQRT) == 0


def test_single_operators_of_float32_stay() -> None:
    nodes = [node(text.split()[0], text.partition(" ")[2], name) for name, text in DECOMPOSED.items()]
    network = load(model(nodes, {"d": ("float32", [6, 16])}, ["r"], NUMBERS))
    assert count(network, LayerType.LAYER_NORMALIZATION) == count(network, LayerType.RSQRT) == 0
    assert count(network, LayerType.DIV) == 1


STORED = {"g": "gq sg zi", "b": "bq sg zi", "epsilon": "eq se zl"}
"""Constants that a quantiser stored as integers, with their scales and zero points."""
INSIDE = "u c s v e t n a"
"""The tensors inside of a normalisation."""


def stored(dtype: str) -> dict[str, Array]:
    """Return the constants of `STORED`, and the scale of the conversions inside of a normalisation."""
    low, steps = np.iinfo(dtype).min, np.arange(16)
    integers = {
        "gq": 200 - 3 * steps,
        "bq": 90 + 5 * steps,
        "eq": np.array(255),
        "zi": np.array(128),
        "zl": np.array(0),
    }
    scales = {"sg": np.float32(0.01), "se": np.float32(1e-5 / 255), "si": np.float32(0.02)}
    moved = {name: np.asarray(each + low, dtype) for name, each in integers.items()}
    return moved | {name: np.asarray(each) for name, each in scales.items()}


def dequantised() -> list[Any]:
    return [node("DequantizeLinear", names, f"{name}_d") for name, names in STORED.items()]


def converted(
    dtype: str = "int8", inside: str = INSIDE, outputs: Sequence[str] = ("y",), behind: str = "", **changed: str
) -> Any:  # noqa: ANN401
    """Return a normalisation as single operators, with conversions behind those inside, and stored constants.

    `x_q` has the integers of a tensor `x`, and `x_d` their real numbers; `behind` is one more node.
    """
    names = {name: f"{name}_d" for name in [*STORED, *inside.split()]}
    nodes = dequantised()
    for output, text in (DECOMPOSED | changed).items():
        op, *inputs = text.split()
        nodes.append(node(op, " ".join(names.get(name, name) for name in inputs), output))
        if output in inside.split():
            nodes.append(node("QuantizeLinear", f"{output} si zi", f"{output}_q"))
            nodes.append(node("DequantizeLinear", f"{output}_q si zi", f"{output}_d"))
    if behind:
        output, op, source = behind.split()
        nodes.append(node(op, source, output))
    return between(dtype, nodes, outputs, more=stored(dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("inside", "changed"),
    [
        (INSIDE, {}),
        ("v e n a", {}),
        ("s v e n a", {"s": "Mul c c"}),
        ("n", {"a": "Mul g n", "r": "Add b a"}),
        ("", {}),
    ],
)
def test_conversions_inside_of_a_normalisation_are_dropped(dtype: str, inside: str, changed: Mapping[str, str]) -> None:
    """It is the layer of a LayerNormalization with the constants' real numbers, bit for bit."""
    epsilon = float(np.float32(np.float32(1e-5 / 255) * 255))
    one = node("LayerNormalization", "d g_d b_d", "r", epsilon=epsilon)
    whole = load(between(dtype, [*dequantised(), one], more=stored(dtype)))
    made = converted(dtype, inside, **changed)
    network = load(made)
    assert [each.type for each in network.layers] == [each.type for each in whole.layers]
    assert count(network, LayerType.LAYER_NORMALIZATION) == 1
    feeds = drawn(network)
    (got,), (wanted,) = network.run(dict(feeds)), whole.run(dict(feeds))
    assert got.tobytes() == wanted.tobytes()
    written = formats.load(made.SerializeToString(), onnx_arithmetic="as-written")
    assert count(written, LayerType.LAYER_NORMALIZATION) == 0


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"outputs": ("y", "n_d")}, {}),
        ({"outputs": ("y", "a_d")}, {}),
        ({"behind": "z Relu v_d", "outputs": ("y", "z")}, {}),
        ({"behind": "z Relu c", "outputs": ("y", "z")}, {}),
        ({}, {"u": "ReduceMean d before"}),
        ({}, {"v": "ReduceMean s before"}),
        ({}, {"s": "Pow c three"}),
        ({}, {"s": "Mul c d"}),
        ({}, {"n": "Div d t"}),
        ({}, {"e": "Add v b"}),
        ({}, {"a": "Mul n d"}),
        ({}, {"r": "Relu a"}),
        ({}, {"u": "ReduceSum d last"}),
    ],
)
def test_other_groups_keep_their_conversions(given: Mapping[str, Any], changed: Mapping[str, str]) -> None:
    network = load(converted(**given, **changed))
    assert count(network, LayerType.LAYER_NORMALIZATION) == 0
    assert {LayerType.SQRT, LayerType.DIV} <= {each.type for each in network.layers}


def test_a_normalisation_of_integers_that_are_converted_otherwise_stays() -> None:
    """The difference is from what was rounded to another scale, the mean of what was not."""
    nodes = [node("QuantizeLinear", "d si zi", "o"), node("DequantizeLinear", "o si zi", "other")]
    texts = DECOMPOSED | {"c": "Sub other u"}
    nodes += [node(text.split()[0], text.partition(" ")[2], name) for name, text in texts.items()]
    assert count(load(between("int8", nodes, more=stored("int8"))), LayerType.LAYER_NORMALIZATION) == 0


def test_conversions_that_contradict_each_other_are_refused() -> None:
    made = converted()
    (wrong,) = [each for each in made.graph.node if list(each.output) == ["n_d"]]
    wrong.input[1] = "sy"
    with pytest.raises(UnsupportedError, match="another scale or zero point than where it was quantised"):
        load(made)


def written_by_pytorch() -> Any:  # noqa: ANN401
    """Return a float32 model whose normalisation is written as PyTorch does before opset 17."""
    nodes = [node("Add", "x one", "d")]
    for output, text in DECOMPOSED.items():
        op, *inputs = text.split()
        given = [name for name in inputs if name != "last"]
        nodes.append(node(op, " ".join(given), output, **({"axes": [-1]} if op == "ReduceMean" else {})))
    return model(nodes, {"x": ("float32", [1, 48, 16])}, ["r"], NUMBERS, opset=13)


@pytest.mark.parametrize(
    "form", ["qdq-s8", "qdq-s8-tensor", "qdq-u8", "qdq-dedicated", "qdq-s8-symmetric", "qop-u8", "qop-s8"]
)
def test_what_quantize_static_makes_of_single_operators(form: str) -> None:
    """Ferrule's results are nearer to those of the float32 model than onnxruntime's, whose steps have 8 bits each."""
    require_module("onnxruntime", "pip install 'ferrule[oracle]'")
    import onnx_storage

    given = written_by_pytorch()
    del given.graph.output[:]
    given.graph.output.append(_real_output())
    samples = [{"x": np.random.default_rng(seed).normal(size=(1, 48, 16)).astype(np.float32)} for seed in range(5)]
    made = onnx_storage.quantised(given, samples[:4], (onnx_storage.FORMS | onnx_storage.SMALL_FORMS)[form])
    network = load(made)
    assert count(network, LayerType.LAYER_NORMALIZATION) == 1
    assert not {each.type for each in network.layers} & {LayerType.MEAN, LayerType.DIV, LayerType.SQRT, LayerType.MUL}
    (real,), (theirs,) = onnxruntime_outputs(given, samples[4]), onnxruntime_outputs(made, samples[4])
    (ours,) = network.run(dict(samples[4]))
    (layer,) = [each for each in network.layers if each.type is LayerType.LAYER_NORMALIZATION]
    scale = network.tensor(layer.outputs[0]).info.scale
    assert (np.abs(ours - theirs) < 1.5 * scale).mean() > 0.98
    assert np.square(ours - real).mean() < np.square(theirs - real).mean()


def _real_output() -> Any:  # noqa: ANN401
    from onnx import helper

    return helper.make_tensor_value_info("r", 1, [1, 48, 16])
