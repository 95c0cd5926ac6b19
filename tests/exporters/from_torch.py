# SPDX-License-Identifier: Apache-2.0
"""PyTorch models exported by torch.onnx.export(dynamo=True), in float32 and quantised by onnxruntime.

PYTHON tests/exporters/from_torch.py FOLDER [WORD ...]

PYTHON has torch 2.9 or later, onnx, onnxscript, onnxruntime and scikit-learn; it needs no Ferrule. The small CNN is
trained for a minute on scikit-learn's digits, the other models have random weights. With WORDs, only models with all of
them in their names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from digits_samples import digits
from onnx_storage import Form, Sample, quantised, store

BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Of MobileNetV2: expansion, output channels, repeats and stride of the first repeat."""


class DigitsCnn(nn.Module):
    """The small CNN of docs/onnx.md."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AvgPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.features(x), 1))


@cache
def trained() -> DigitsCnn:
    """Return the CNN trained on digits."""
    images, labels = digits()
    model, x, y = DigitsCnn(), torch.from_numpy(images[:1500]), torch.from_numpy(labels[:1500])
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(15):
        for chosen in torch.randperm(len(x)).split(50):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimiser.step()
    right = (model.eval()(torch.from_numpy(images[1500:])).argmax(1).numpy() == labels[1500:]).mean()
    print(f"digits: {right:.1%} of {len(images) - 1500} test images are right")
    return model


def _block(before: int, after: int, expansion: int, stride: int) -> nn.Sequential:
    def unit(source: int, result: int, kernel: int, step: int, group: int) -> list[nn.Module]:
        conv = nn.Conv2d(source, result, kernel, step, kernel // 2, groups=group, bias=False)
        return [conv, nn.BatchNorm2d(result), nn.ReLU6()]

    inner = before * expansion
    layers = unit(before, inner, 1, 1, 1) if expansion > 1 else []
    return nn.Sequential(*layers, *unit(inner, inner, 3, stride, inner), *unit(inner, after, 1, 1, 1)[:2])


class MobileNetV2(nn.Module):
    """MobileNetV2 (arXiv 1801.04381) with scaled channels."""

    def __init__(self, alpha: float, classes: int) -> None:
        super().__init__()

        def scaled(channels: int) -> int:
            return max(8, int(channels * alpha + 4) // 8 * 8)

        before = scaled(32)
        self.stem = nn.Sequential(nn.Conv2d(3, before, 3, 2, 1, bias=False), nn.BatchNorm2d(before), nn.ReLU6())
        blocks = []
        for expansion, channels, repeats, stride in BLOCKS:
            for repeat in range(repeats):
                blocks.append(_block(before, scaled(channels), expansion, 1 if repeat else stride))
                before = scaled(channels)
        self.blocks = nn.ModuleList(blocks)
        last = 1280 if alpha >= 1 else scaled(1280)
        self.top = nn.Sequential(nn.Conv2d(before, last, 1, bias=False), nn.BatchNorm2d(last), nn.ReLU6())
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(last, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for block in self.blocks:
            y = block(x)
            x = x + y if x.shape == y.shape else y
        return self.classifier(self.top(x).mean((2, 3)))


class Recurrent(nn.Module):
    """An LSTM or a GRU over a sequence, and a Linear over the last step."""

    def __init__(self, kind: type[nn.LSTM | nn.GRU], **options: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.cell = kind(10, 16, batch_first=True, **options)
        self.head = nn.Linear(16 * (2 if options.get("bidirectional") else 1), 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.cell(x)[0][:, -1])


class Separable1d(nn.Module):
    """A network for sound in one dimension: strided, depthwise and dilated Conv1d."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=4, padding=4), nn.BatchNorm1d(16), nn.ReLU(),
            nn.Conv1d(16, 16, 5, padding=4, dilation=2, groups=16), nn.SiLU(), nn.Conv1d(16, 24, 1), nn.PReLU(24),
            nn.MaxPool1d(2), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(96, 5), nn.Softmax(-1),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class UNet(nn.Module):
    """Encoder and decoder: ConvTranspose2d, interpolate (bilinear and nearest) and concatenations."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.ReLU())
        self.second = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.ReLU())
        self.third = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(2 * channels, 2 * channels, 3, padding=1), nn.Hardswish())
        self.up = nn.ConvTranspose2d(4 * channels, channels, 2, 2)
        self.last = nn.Conv2d(2 * channels, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.first(x)
        second = self.second(first)
        third = nn.functional.interpolate(self.third(second), scale_factor=2, mode="nearest")
        at = torch.cat((self.up(torch.cat((third, second), 1)), first), 1)
        mask = torch.sigmoid(self.last(at))
        return nn.functional.interpolate(mask, scale_factor=2, mode="bilinear", align_corners=False)


class Mobile3(nn.Module):
    """A block of MobileNetV3: Hardswish, squeeze and excitation with Hardsigmoid."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, channels, 3, 2, 1), nn.Hardswish())
        self.depthwise = nn.Sequential(nn.Conv2d(channels, channels, 5, 1, 2, groups=channels), nn.Hardswish())
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), nn.ReLU(), nn.Conv2d(4, channels, 1), nn.Hardsigmoid()
        )
        self.project = nn.Conv2d(channels, channels, 1)
        self.head = nn.Linear(channels, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        y = self.depthwise(x)
        x = x + self.project(y * self.squeeze(y))
        return self.head(x.mean((-2, -1)))


@dataclass(frozen=True, kw_only=True)
class Made:
    """A model to export, and how."""

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]
    forms: tuple[Form, ...] = ()
    """The quantised forms that are written beside float32."""
    dynamic: bool = False
    """Whether the first axis of the input is dynamic."""
    note: str = "random weights"


torch.set_num_threads(1)
_BOTH = (Form(), Form(operators=True, activations="QUInt8"))
MODELS: dict[str, Made] = {
    "torch-digits": Made(build=trained, shape=(1, 1, 8, 8), forms=_BOTH, note="trained on digits"),
    "torch-digits-batch": Made(build=trained, shape=(1, 1, 8, 8), forms=_BOTH[:1], dynamic=True, note="dynamic batch"),
    "torch-mobilenet_v2-0.1-32": Made(build=lambda: MobileNetV2(0.1, 10), shape=(1, 3, 32, 32), forms=_BOTH),
    "torch-mobilenet_v2-0.35-96": Made(
        build=lambda: MobileNetV2(0.35, 100),
        shape=(1, 3, 96, 96),
        forms=(Form(), Form(activations="QUInt8", per_channel=False)),
    ),
    "torch-lstm": Made(build=lambda: Recurrent(nn.LSTM), shape=(1, 12, 10)),
    "torch-lstm-2-bidirectional": Made(
        build=lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True), shape=(1, 12, 10)
    ),
    "torch-gru": Made(build=lambda: Recurrent(nn.GRU), shape=(1, 12, 10)),
    "torch-sound": Made(build=Separable1d, shape=(1, 1, 400), forms=_BOTH[:1]),
    "torch-u_net": Made(build=UNet, shape=(1, 3, 24, 24), forms=_BOTH[:1]),
    "torch-mobilenet_v3": Made(build=Mobile3, shape=(1, 3, 24, 24), forms=_BOTH),
    "torch-transformer": Made(
        build=lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu"),
        shape=(1, 12, 32),
        forms=_BOTH[:1],
    ),
}


def settled(model: nn.Module, shape: tuple[int, ...]) -> nn.Module:
    """Give batch normalisations of random weights the statistics of random inputs, as training does."""
    with torch.no_grad():
        for _ in range(20):
            model.train()(torch.randn(8, *shape[1:]))
    return model.eval()


def samples_for(made: Made, count: int, seed: int) -> list[Sample]:
    """Return images of digits, or random inputs."""
    if made.build is trained:
        images, _ = digits()
        return [{"input": each[None]} for each in images[1500 + seed * count :][:count]]
    random = np.random.default_rng(seed)
    return [{"input": random.normal(0, 1, made.shape).astype(np.float32)} for _ in range(count)]


def main(arguments: Sequence[str]) -> None:
    """Write the models to a folder."""
    folder, words = Path(arguments[0]), arguments[1:]
    for name, made in MODELS.items():
        if not all(word in name for word in words):
            continue
        torch.manual_seed(2026)
        model = made.build() if made.build is trained else settled(made.build(), made.shape)
        exported = torch.onnx.export(
            model.eval(),
            (torch.zeros(made.shape),) if not made.dynamic else (torch.zeros(2, *made.shape[1:]),),
            input_names=["input"],
            dynamo=True,
            dynamic_shapes={"x": {0: torch.export.Dim("batch")}} if made.dynamic else None,
            verbose=False,
        ).model_proto
        exporter = f"torch {torch.__version__}, dynamo"
        samples = samples_for(made, 8, 0)
        store(folder, name, exported, samples, exporter=exporter, form="float32", note=made.note)
        for form in made.forms:
            written = quantised(exported, samples_for(made, 32, 1), form)
            kind = "qop" if form.operators else "qdq"
            store(
                folder,
                f"{name}-{kind}-{form.activations[1:].lower()}",
                written,
                samples,
                exporter=f"{exporter}, quantize_static",
                form=form.description,
                note=made.note,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
