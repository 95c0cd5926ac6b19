# SPDX-License-Identifier: Apache-2.0
"""Small blocks and heads with random weights, as exporters write them: the files of tests/exporters/blocks.

PYTHON tests/exporters/blocks.py [WORD ...]

PYTHON has torch, onnx, onnxscript, onnxruntime, torchao, brevitas, keras, scikit-learn and skl2onnx; it needs no
Ferrule. With WORDs, only files with all of them in their names. Each file states the versions that made it, as its
metadata `exporter`. tests/formats/onnx/test_onnx_exported.py reads them.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import numpy as np
import onnx
import torch
from torch import nn

FOLDER = Path(__file__).with_name("blocks")
torch.set_num_threads(1)
Shape = tuple[int, ...]


class Then(nn.Module):
    """A function of several modules."""

    def __init__(self, function: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:  # noqa: ANN401
        return self.function(x, **self.parts)


def conv(inputs: int, outputs: int, kernel: int = 3, **options: Any) -> nn.Sequential:  # noqa: ANN401
    """Return a convolution of the same size, with batch normalisation and ReLU."""
    made = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, **options)
    return nn.Sequential(made, nn.BatchNorm2d(outputs), nn.ReLU())


class Attention(nn.Module):
    """An encoder's block: attention with heads, a residual sum, normalisation and GELU."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        return x + self.down(nn.functional.gelu(self.up(x)))


def upsample(x: torch.Tensor, first: nn.Module, second: nn.Module, last: nn.Module) -> torch.Tensor:
    """Return a picture of twice the size by three ways, side by side."""
    x = first(x)
    near = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
    smooth = nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    return last(torch.cat((second(x), near, smooth), 1))


BLOCKS: dict[str, tuple[Callable[[], nn.Module], Shape]] = {
    "flatten": (lambda: nn.Sequential(conv(1, 4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)), (1, 1, 8, 8)),
    "global_pools": (
        lambda: Then(
            lambda x, first, last: last(torch.cat((first(x).mean((2, 3)), first(x).amax((2, 3))), 1)),
            first=conv(3, 4),
            last=nn.Linear(8, 3),
        ),
        (1, 3, 8, 8),
    ),
    "adaptive_pool": (
        lambda: nn.Sequential(conv(1, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3), nn.Softmax(-1)),
        (1, 1, 8, 8),
    ),
    "residual": (
        lambda: Then(
            lambda x, first, second, skip: torch.relu(second(first(x)) + skip(x)),
            first=conv(4, 6, stride=2),
            second=nn.Sequential(nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)),
            skip=nn.Conv2d(4, 6, 1, stride=2),
        ),
        (1, 4, 8, 8),
    ),
    "squeeze_excite": (
        lambda: Then(
            lambda x, first, gate: first(x) * gate(first(x)),
            first=conv(1, 8),
            gate=nn.Sequential(
                nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 8, 1), nn.Hardsigmoid()
            ),
        ),
        (1, 1, 8, 8),
    ),
    "squeeze_excite_linear": (
        lambda: Then(
            lambda x, first, gate: first(x) * gate(first(x).mean((2, 3)))[:, :, None, None],
            first=conv(1, 8),
            gate=nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 8), nn.Sigmoid()),
        ),
        (1, 1, 8, 8),
    ),
    "hard_swish": (
        lambda: nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.Hardswish(), nn.Conv2d(4, 4, 1), nn.SiLU()),
        (1, 1, 8, 8),
    ),
    "layer_norm": (lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 3)), (1, 6, 8)),
    "attention": (Attention, (1, 6, 8)),
    "gru": (
        lambda: Then(
            lambda x, cell, head: head(cell(x)[0][:, -1]), cell=nn.GRU(4, 6, batch_first=True), head=nn.Linear(6, 3)
        ),
        (1, 5, 4),
    ),
    "lstm": (
        lambda: Then(
            lambda x, cell, head: head(cell(x)[0][:, -1]), cell=nn.LSTM(4, 6, batch_first=True), head=nn.Linear(6, 3)
        ),
        (1, 5, 4),
    ),
    "conv1d": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 8, 5, stride=2, padding=2), nn.BatchNorm1d(8), nn.ReLU(),
            nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=8),
            nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 3),
        ),
        (1, 2, 32),
    ),
    "conv1d_unsqueeze": (
        lambda: Then(
            lambda x, first, last: last(first(x.unsqueeze(2)).squeeze(2).mean(-1)),
            first=nn.Sequential(nn.Conv2d(2, 8, (1, 5), padding=(0, 2)), nn.ReLU(), nn.MaxPool2d((1, 2))),
            last=nn.Linear(8, 3),
        ),
        (1, 2, 32),
    ),
    "separable": (
        lambda: nn.Sequential(conv(3, 6, stride=2), conv(6, 6, groups=6), conv(6, 8, 1), nn.AvgPool2d(4), nn.Flatten()),
        (1, 3, 8, 8),
    ),
    "upsample": (
        lambda: Then(
            upsample, first=conv(1, 4), second=nn.ConvTranspose2d(4, 4, 2, 2), last=nn.Conv2d(12, 1, 1)
        ),
        (1, 1, 6, 6),
    ),
}  # fmt: skip


def built(name: str) -> tuple[nn.Module, torch.Tensor]:
    """Return a block in the mode of inference, whose normalisations have seen random inputs, and an example."""
    build, shape = BLOCKS[name]
    torch.manual_seed(len(name))
    model = build()
    with torch.no_grad():
        for _ in range(5):
            model.train()(torch.randn(8, *shape[1:]))
    return model.eval(), torch.randn(shape)


def by_dynamo(name: str) -> onnx.ModelProto:
    """Return a block exported by way of torch.export."""
    model, example = built(name)
    return torch.onnx.export(model, (example,), dynamo=True, verbose=False).model_proto


def by_torchscript(name: str) -> onnx.ModelProto:
    """Return a block exported by way of TorchScript, the older exporter."""
    model, example = built(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        torch.onnx.export(model, (example,), str(path), dynamo=False, input_names=["x"], output_names=["output"])
        return onnx.load(path)


def by_quantize_static(name: str) -> onnx.ModelProto:
    """Return a block of the dynamo exporter, quantised by onnxruntime."""
    from onnx_storage import Form, quantised

    made = by_dynamo(name)
    source, shape = made.graph.input[0].name, BLOCKS[name][1]
    random = np.random.default_rng(0)
    samples = [{source: random.normal(size=shape).astype(np.float32)} for _ in range(16)]
    return quantised(made, samples, Form())


def by_pt2e(name: str) -> onnx.ModelProto:
    """Return a block quantised by PyTorch 2 Export (torchao) and exported."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )

    model, example = built(name)
    captured = torch.export.export(model, (example,)).module()
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(captured, quantizer)
    for _ in range(16):
        prepared(torch.randn(example.shape))
    program = torch.export.export(convert_pt2e(prepared), (example,))
    return torch.onnx.export(program, dynamo=True, verbose=False).model_proto


def by_keras(name: str) -> onnx.ModelProto:
    """Return a block of Keras, exported by Keras."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(len(name))  # equal weights of two blocks would be one buffer
    image, words = layers.Input((8, 8, 2), name="image"), layers.Input((6, 8), name="words")
    made: dict[str, Callable[[], tuple[Any, Any]]] = {
        "head": lambda: (image, layers.Dense(3, "softmax")(layers.GlobalAveragePooling2D()(layers.ReLU(6.0)(
            layers.BatchNormalization()(layers.Conv2D(4, 3, padding="same")(image)))))),
        "separable": lambda: (image, layers.Flatten()(layers.MaxPooling2D()(
            layers.SeparableConv2D(4, 3, padding="same", activation="relu")(image)))),
        "attention": lambda: (words, layers.MultiHeadAttention(2, 4)(words, words)),
        "gru": lambda: (words, layers.Dense(3)(layers.GRU(4)(words))),
        "lstm": lambda: (words, layers.Dense(3)(layers.LSTM(4)(words))),
        "conv1d": lambda: (words, layers.GlobalMaxPooling1D()(
            layers.Conv1D(4, 3, padding="causal", activation="swish")(words))),
        "upsample": lambda: (image, layers.Conv2DTranspose(1, 3, strides=2, padding="same")(
            layers.UpSampling2D(2)(image))),
    }  # fmt: skip
    model = keras.Model(*made[name]())
    model(np.zeros((1, *model.inputs[0].shape[1:]), np.float32))  # without a call, it cannot be exported
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.export(str(path), format="onnx", verbose=False)
        return onnx.load(path)


def by_brevitas(name: str) -> onnx.ModelProto:
    """Return a block whose layers are quantised by Brevitas, as QCDQ."""
    import brevitas.nn as qnn
    from brevitas.export import export_onnx_qcdq
    from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat, Int32Bias, Uint8ActPerTensorFloat

    torch.manual_seed(1)
    weights: dict[str, Any] = {
        "weight_quant": Int8WeightPerChannelFloat, "bias_quant": Int32Bias, "return_quant_tensor": True, "bias": True
    }  # fmt: skip
    first = qnn.QuantConv2d(1, 4, 3, padding=1, **weights)
    relu = qnn.QuantReLU(act_quant=Uint8ActPerTensorFloat, return_quant_tensor=True)
    if name == "residual":
        summed = qnn.QuantEltwiseAdd(input_quant=Int8ActPerTensorFloat, output_quant=Int8ActPerTensorFloat)
        second = qnn.QuantConv2d(4, 4, 3, padding=1, **weights)
        body: nn.Module = Then(lambda x, first, second, summed: summed(first(x), second(first(x))), first=nn.Sequential(
            first, relu), second=second, summed=summed)  # fmt: skip
    else:
        last = qnn.QuantLinear(64, 3, **weights | {"output_quant": Int8ActPerTensorFloat, "return_quant_tensor": False})
        body = nn.Sequential(first, relu, nn.MaxPool2d(2), nn.Flatten(), last)
    model = nn.Sequential(qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat, return_quant_tensor=True), body)
    for _ in range(5):
        model(torch.randn(8, 1, 8, 8))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_onnx_qcdq(
            model.eval(), args=(torch.zeros(1, 1, 8, 8),), export_path=str(path), opset_version=18, dynamo=False
        )
        return onnx.load(path)


def by_sklearn(name: str) -> onnx.ModelProto:
    """Return a multi-layer perceptron of scikit-learn."""
    from skl2onnx import to_onnx
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    random = np.random.default_rng(0)
    x = random.normal(0, 1, (200, 4)).astype(np.float32)
    if name == "regressor":
        model = MLPRegressor(hidden_layer_sizes=(8, 4), activation="tanh", random_state=0, max_iter=50).fit(
            x, x[:, 0] - x[:, 1]
        )
        return to_onnx(model, x[:1])
    model = MLPClassifier(hidden_layer_sizes=(8,), random_state=0, max_iter=50).fit(
        x, (x[:, 0] > 0).astype(int) + (x[:, 1] > 0)
    )
    made = to_onnx(model, x[:1], options={"zipmap": False})
    return onnx.utils.Extractor(made).extract_model(["X"], ["probabilities"])  # without the label


_QUANTISED = ("flatten", "adaptive_pool", "residual", "squeeze_excite", "hard_swish", "separable", "conv1d", "upsample")
_KERAS = ("head", "separable", "attention", "gru", "lstm", "conv1d", "upsample")
FILES: dict[str, tuple[Callable[[str], onnx.ModelProto], Sequence[str], Sequence[str]]] = {
    "dynamo": (by_dynamo, tuple(BLOCKS), ("torch", "onnxscript")),
    "torchscript": (by_torchscript, tuple(BLOCKS), ("torch",)),
    "quantize_static": (by_quantize_static, _QUANTISED, ("torch", "onnxruntime")),
    "pt2e": (by_pt2e, ("flatten", "residual", "separable"), ("torch", "torchao", "onnxscript")),
    "keras": (by_keras, _KERAS, ("keras", "torch")),
    "brevitas": (by_brevitas, ("flatten", "residual"), ("brevitas", "torch")),
    "sklearn": (by_sklearn, ("classifier", "regressor"), ("scikit-learn", "skl2onnx")),
}
"""By exporter: the function, the blocks, and the packages whose versions a file states."""


def small(model: onnx.ModelProto, packages: Sequence[str]) -> onnx.ModelProto:
    """Return a model without what only people read: places in sources, and shapes between nodes."""
    made = copy.deepcopy(model)
    made.ClearField("doc_string")
    del made.metadata_props[:]
    made.metadata_props.add(key="exporter", value=", ".join(f"{each} {version(each)}" for each in packages))
    for part in (*made.graph.node, *made.graph.input, *made.graph.output, *made.graph.initializer):
        part.ClearField("doc_string")
        del part.metadata_props[:]
    made.graph.ClearField("doc_string")
    del made.graph.metadata_props[:]
    del made.graph.value_info[:]
    return made


def main(words: Sequence[str]) -> int:
    """Write the files; the exit code is 1 if a block cannot be exported."""
    failed = False
    for exporter, (export, names, packages) in FILES.items():
        for name in names:
            full = f"{exporter}-{name}"
            if not all(word in full for word in words):
                continue
            try:
                made = small(export(name), packages)
            except Exception as error:  # noqa: BLE001 the others are written
                print(f"{full}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)  # noqa: T201
                failed = True
                continue
            (FOLDER / f"{full}.onnx").write_bytes(made.SerializeToString())
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
