# SPDX-License-Identifier: Apache-2.0
"""A small CNN trained with quantisation by Brevitas on scikit-learn's digits, exported as QCDQ.

PYTHON tests/exporters/from_brevitas.py FOLDER

PYTHON has torch, brevitas, onnx, onnxoptimizer, onnxscript, onnxruntime and scikit-learn; it needs no Ferrule. QCDQ is
QuantizeLinear, Clip and DequantizeLinear, where Clip is left out for 8 bits.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import brevitas
import brevitas.nn as qnn
import onnx
import torch
from brevitas.export import export_onnx_qcdq
from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat, Int32Bias, Uint8ActPerTensorFloat
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from digits_samples import digits
from onnx_storage import store

torch.set_num_threads(1)


class QuantCnn(nn.Module):
    """A CNN whose weights and activations have so many bits, with biases of int32 or of float32."""

    def __init__(self, weight_bits: int, activation_bits: int, bias: type | None) -> None:
        super().__init__()

        def conv(inputs: int, outputs: int, kernel: int, groups: int = 1) -> list[nn.Module]:
            return [
                qnn.QuantConv2d(
                    inputs,
                    outputs,
                    kernel,
                    padding=kernel // 2,
                    groups=groups,
                    weight_quant=Int8WeightPerChannelFloat,
                    weight_bit_width=weight_bits,
                    bias_quant=bias,
                    return_quant_tensor=True,
                ),
                qnn.QuantReLU(act_quant=Uint8ActPerTensorFloat, bit_width=activation_bits, return_quant_tensor=True),
            ]

        self.source = qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat, return_quant_tensor=True)
        self.features = nn.Sequential(*conv(1, 8, 3), *conv(8, 8, 3, 8), *conv(8, 16, 1), nn.MaxPool2d(2))
        self.classifier = qnn.QuantLinear(
            16 * 16,
            10,
            bias=True,
            weight_quant=Int8WeightPerChannelFloat,
            weight_bit_width=weight_bits,
            bias_quant=bias,
            output_quant=Int8ActPerTensorFloat,
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.features(self.source(x)), 1))


def trained(weight_bits: int, activation_bits: int, bias: type | None) -> QuantCnn:
    """Return the CNN after a short training."""
    images, labels = digits()
    torch.manual_seed(2026)
    model = QuantCnn(weight_bits, activation_bits, bias)
    x, y = torch.from_numpy(images[:1500]), torch.from_numpy(labels[:1500])
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(4):
        for chosen in torch.randperm(len(x)).split(50):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimiser.step()
    return model.eval()


def main(arguments: Sequence[str]) -> None:
    """Write the models to a folder."""
    samples = [{"input": each[None]} for each in digits()[0][1500:1508]]
    for weight_bits, activation_bits, bias in ((8, 8, Int32Bias), (4, 6, None)):
        model = trained(weight_bits, activation_bits, bias)
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "model.onnx"
            export_onnx_qcdq(
                model,
                args=(torch.zeros(1, 1, 8, 8),),
                export_path=str(path),
                input_names=["input"],
                opset_version=18,
                dynamo=bias is None,  # which Brevitas refuses for quantised biases
            )
            made = onnx.load(path)
        store(
            Path(arguments[0]),
            f"brevitas-cnn-w{weight_bits}a{activation_bits}",
            made,
            samples,
            exporter=f"Brevitas {brevitas.__version__}, torch {torch.__version__}",
            form=f"QCDQ, weights {weight_bits} bits per channel, activations {activation_bits} bits, "
            f"{'float32' if bias is None else 'int32'} biases",
            note="trained on digits",
        )


if __name__ == "__main__":
    main(sys.argv[1:])
