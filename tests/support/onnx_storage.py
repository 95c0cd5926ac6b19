# SPDX-License-Identifier: Apache-2.0
"""ONNX models in a folder: quantised by onnxruntime, stored with inputs and with onnxruntime's outputs.

Imports neither Ferrule nor pytest, so that the scripts of tests/exporters run in the environments of frameworks.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

Array = NDArray[Any]
Sample = Mapping[str, Array]
"""The inputs of one run by their names."""


def session(model: bytes | Path, *, fused: bool = True) -> ort.InferenceSession:
    """Return a session of onnxruntime in the one configuration in which docs/onnx.md counts differences.

    That is: extended optimisations, or none unless `fused`; one thread; and sums of int8 products that do not saturate
    on processors without VNNI (`session.x64quantprecision`). This option turns int8 weights into uint8. onnxruntime
    1.32.0 then fails at a QLinearConv or QGemm of int8 data, and at weights or biases that several nodes share; such a
    model runs without the option, which is exact where the processor has VNNI. `onnx_saturation.saturating` has the
    sums of the others.
    """
    states = ort.capi.onnxruntime_pybind11_state
    try:
        return _session(model, fused=fused, precise=True)
    except (states.Fail, states.NotImplemented):
        return _session(model, fused=fused, precise=False)


def _session(model: bytes | Path, *, fused: bool, precise: bool) -> ort.InferenceSession:
    level = ort.GraphOptimizationLevel
    options = ort.SessionOptions()
    options.graph_optimization_level = level.ORT_ENABLE_EXTENDED if fused else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if precise:
        options.add_session_config_entry("session.x64quantprecision", "1")
    content = model if isinstance(model, bytes) else str(model)
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def sequence(model: bytes | Path, samples: Sequence[Sample]) -> dict[str, Array]:
    """Return the inputs and onnxruntime's outputs of all samples: `input0`, `output0`, ...; the first axis is the run.

    They have the order of the model's inputs and outputs.
    """
    running = session(model)
    names = [each.name for each in running.get_inputs()]
    found = [running.run(None, dict(sample)) for sample in samples]
    arrays = {f"input{index}": np.stack([sample[name] for sample in samples]) for index, name in enumerate(names)}
    return arrays | {f"output{index}": np.stack(each) for index, each in enumerate(zip(*found, strict=True))}


@dataclass(frozen=True, kw_only=True)  # of the standard library: scripts that import this have no Ferrule
class Form:
    """How onnxruntime's quantize_static writes a model."""

    operators: bool = False
    """QOperator (QLinearConv and so on) instead of QDQ (DequantizeLinear, Conv, QuantizeLinear)."""
    activations: str = "QInt8"
    weights: str = "QInt8"
    per_channel: bool = True
    options: Mapping[str, Any] | None = None
    """`extra_options`, such as ActivationSymmetric and WeightSymmetric."""

    @property
    def description(self) -> str:
        """The form in words."""
        words = [
            "QOperator" if self.operators else "QDQ",
            self.activations.removeprefix("Q").lower(),
            f"weights {self.weights.removeprefix('Q').lower()}",
            "per channel" if self.per_channel else "per tensor",
            *(f"{name}={value}" for name, value in (self.options or {}).items()),
        ]
        return ", ".join(words)


FORMS = {
    "qdq-s8": Form(),
    "qop-u8": Form(operators=True, activations="QUInt8"),
}
"""The two forms in which each kind of graph is written."""
SMALL_FORMS = {
    "qdq-s8-tensor": Form(per_channel=False),
    "qdq-s8-symmetric": Form(options={"ActivationSymmetric": True, "WeightSymmetric": True}),
    "qdq-u8": Form(activations="QUInt8"),
    "qdq-u8u8-tensor": Form(activations="QUInt8", weights="QUInt8", per_channel=False),
    "qdq-u8u8-channel": Form(activations="QUInt8", weights="QUInt8"),
    "qdq-s8-asymmetric": Form(options={"WeightSymmetric": False}, per_channel=False),
    "qdq-weights-dequantised": Form(options={"AddQDQPairToWeight": True}),
    "qdq-dedicated": Form(options={"DedicatedQDQPair": True}),
    "qdq-bias-float": Form(options={"QuantizeBias": False}),
    "qdq-s16": Form(activations="QInt16"),
    "qop-s8": Form(operators=True),
    "qop-s8-tensor": Form(operators=True, per_channel=False),
    "qop-u8u8": Form(operators=True, activations="QUInt8", weights="QUInt8", per_channel=False),
}
"""Further forms, in which small networks are written."""


def quantised(model: onnx.ModelProto, samples: Sequence[Sample], form: Form) -> onnx.ModelProto:
    """Return what quantize_static makes of a float32 model, prepared as onnxruntime's documentation says."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    left: Iterator[Sample] = iter(samples)

    class Calibration(CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> dict[str, Array] | None:
            sample = next(left, None)
            return None if sample is None else dict(sample)

    with tempfile.TemporaryDirectory() as name:
        given, prepared, written = (Path(name) / each for each in ("given.onnx", "prepared.onnx", "written.onnx"))
        onnx.save(model, given)
        quant_pre_process(str(given), str(prepared), skip_symbolic_shape=True)
        quantize_static(
            str(prepared),
            str(written),
            Calibration(),
            quant_format=QuantFormat.QOperator if form.operators else QuantFormat.QDQ,
            activation_type=QuantType[form.activations],
            weight_type=QuantType[form.weights],
            per_channel=form.per_channel,
            extra_options=dict(form.options or {}),
        )
        return onnx.load(written)


def store(
    folder: Path,
    name: str,
    model: onnx.ModelProto,
    samples: Sequence[Sample],
    *,
    exporter: str,
    form: str,
    note: str = "",
) -> None:
    """Write NAME.onnx, NAME.npz with the samples and onnxruntime's outputs, and NAME.json that describes the model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.onnx"
    onnx.checker.check_model(model)
    arrays = sequence(model.SerializeToString(), samples)
    onnx.save(model, path)
    np.savez_compressed(path.with_suffix(".npz"), allow_pickle=False, **arrays)
    about = {"exporter": exporter, "form": form, "note": note}
    path.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
