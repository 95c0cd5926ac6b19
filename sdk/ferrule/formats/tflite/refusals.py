# SPDX-License-Identifier: Apache-2.0
"""The errors for operators that no row of the table reads, with what would unblock each."""

from __future__ import annotations

from collections.abc import Mapping

from ferrule.errors import UnsupportedError
from ferrule.formats.tflite.records import OperatorRecord
from ferrule.formats.tflite.tensors import DENSE

_ELSEWHERE = (
    "run this step outside of the model: convert the model from the tensor behind it, or up to the one before it"
)
_CALLS = frozenset({"CALL", "STABLEHLO_COMPOSITE", "STABLEHLO_WHILE"})
_REMEDIES: Mapping[str, str] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": "build the two directions from UNIDIRECTIONAL_SEQUENCE_LSTM and REVERSE_V2",
    "BIDIRECTIONAL_SEQUENCE_RNN": "unroll the layer (keras: unroll=True), so that it becomes FULLY_CONNECTED layers",
    "COMPLEX_ABS": _ELSEWHERE,
    "CONV_3D": "reshape the model to CONV_2D layers",
    "FAKE_QUANT": "convert the trained model to int8 (full integer quantisation), which replaces this operator",
    "GELU": "convert with approximate activations of supported operators, such as x * LOGISTIC(1.702 * x)",
    "LSTM": "convert the layer as UNIDIRECTIONAL_SEQUENCE_LSTM, or unroll it (keras: unroll=True)",
    "RNN": "unroll the layer (keras: unroll=True), so that it becomes FULLY_CONNECTED layers",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "unroll the layer (keras: unroll=True), so that it becomes FULLY_CONNECTED layers",
}
_COMPILED: Mapping[str, str] = {
    "edgetpu-custom-op": "edgetpu_compiler, for the Coral Edge TPU",
    "ethos-u": "Vela, for Arm's Ethos-U",
    "NeutronGraph": "the Neutron converter, for NXP's NPU",
}
"""Compilers that put a program for an NPU into a model, by the code of the operator that runs it."""
_RECURRENT = (
    "convert the recurrent layer with a batch of fixed size (keras: Input(batch_size=1)), which makes an LSTM one "
    "operator, or unroll it (keras: unroll=True)"
)
_STEPS = ("HASHTABLE", "RANDOM", "MULTINOMIAL", "NON_MAX", "STFT", "RFFT", "FFT", "SKIP_GRAM", "LSH", "UNIQUE", "WHERE")


def kind_of(record: OperatorRecord) -> str:
    """Return the type of an operator, with the code of a custom one."""
    return f"CUSTOM '{record.custom_code}'" if record.type == "CUSTOM" else record.type


def unsupported(record: OperatorRecord) -> UnsupportedError:
    """Return the error for an operator that cannot be read, with the way out in its hint."""
    if record.type.startswith("number "):
        return UnsupportedError(
            "the schema here does not define this operator",
            hint="the file is of a newer converter: take a newer Ferrule, or convert with an older TensorFlow",
        )
    if record.type == "CUSTOM":
        return _custom(record.custom_code)
    if record.type in _CALLS:
        return UnsupportedError(
            "calls of other functions are not supported, except IF, WHILE and CALL_ONCE",
            hint="convert the model with its functions inlined",
        )
    if record.type.startswith("STABLEHLO_"):
        return UnsupportedError(
            "operators of StableHLO are not supported", hint="convert the model with builtin operators"
        )
    if record.type == "DENSIFY":
        return UnsupportedError("sparse weights are not supported", hint=DENSE)
    remedy = _REMEDIES.get(record.type)
    if remedy is None:
        remedy = (
            _ELSEWHERE
            if any(step in record.type for step in _STEPS)
            else "replace the operator in the trained model: docs/operators.md lists those that are supported, and "
            "docs/add_operator.md how one is added"
        )
    return UnsupportedError("this operator is not supported", hint=remedy)


def _custom(code: str) -> UnsupportedError:
    if code.startswith("Flex"):
        hint = "convert without tf.lite.OpsSet.SELECT_TF_OPS, and replace the function that then cannot be converted"
        return UnsupportedError(
            "operators of full TensorFlow (Flex) are not supported; no microcontroller runtime has them",
            hint=_RECURRENT if code.startswith("FlexTensorList") else hint,
        )
    compiler = _COMPILED.get(code)
    if compiler is not None:
        return UnsupportedError(
            f"it is a program for an NPU; the file was compiled by {compiler}",
            hint="load the .tflite file from which it was compiled",
        )
    return UnsupportedError(
        "this custom operator is not supported",
        hint=f"convert without allow_custom_ops, or {_ELSEWHERE}",
    )
