# SPDX-License-Identifier: Apache-2.0
"""Keras 3 models exported by `model.export(format="onnx")`, in float32 and quantised by onnxruntime.

PYTHON tests/exporters/from_keras.py FOLDER [WORD ...]

PYTHON has keras 3.12 or later, torch (the backend), onnx, onnxscript, onnxruntime and scikit-learn; it needs no
Ferrule. The small CNN and the autoencoder are trained on scikit-learn's digits, the other models have random weights.
With WORDs, only models with all of them in their names.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import keras
import numpy as np
import onnx
import torch
from digits_samples import digits
from keras import layers
from onnx_storage import Array, Form, quantised, store

torch.set_num_threads(1)
FORMS = (Form(), Form(operators=True, activations="QUInt8"))


def cnn() -> tuple[keras.Model, Array]:
    """A small CNN over pictures in NHWC."""
    images, labels = digits()
    x = images.transpose(0, 2, 3, 1)
    model = keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(8, 3, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.ReLU(6.0),
            layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x[:1500], labels[:1500], epochs=3, verbose=0)
    return model, x[1500:]


def autoencoder() -> tuple[keras.Model, Array]:
    """An autoencoder of Dense layers."""
    x = digits()[0].reshape(-1, 64)
    model = keras.Sequential(
        [
            layers.Input((64,)),
            layers.Dense(32, activation="relu"),
            layers.Dense(8, activation="relu"),
            layers.Dense(32, activation="relu"),
            layers.Dense(64, activation="sigmoid"),
        ]
    )
    model.compile("adam", "mse")
    model.fit(x[:1500], x[:1500], epochs=3, verbose=0)
    return model, x[1500:]


def ds_cnn() -> tuple[keras.Model, Array]:
    """The DS-CNN for keywords: padding that is not symmetric, GlobalAveragePooling2D."""
    keras.utils.set_random_seed(1)
    at = inputs = layers.Input((49, 10, 1))
    at = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(64, (10, 4), strides=2, padding="same")(at)))
    for _ in range(4):
        at = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(at)))
        at = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(64, 1)(at)))
    at = layers.Dense(12, activation="softmax")(layers.GlobalAveragePooling2D()(at))
    return keras.Model(inputs, at), _random(49, 10, 1)


def segmentation() -> tuple[keras.Model, Array]:
    """Conv2DTranspose, UpSampling2D and Concatenate."""
    keras.utils.set_random_seed(2)
    inputs = layers.Input((16, 16, 3))
    first = layers.Conv2D(8, 3, padding="same", activation="relu")(inputs)
    second = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(first)
    at = layers.Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(second)
    at = layers.Concatenate()([at, layers.UpSampling2D(2)(second), first])
    return keras.Model(inputs, layers.Conv2D(1, 1, activation="sigmoid")(at)), _random(16, 16, 3)


def sound() -> tuple[keras.Model, Array]:
    """Conv1D with causal padding, and SeparableConv1D."""
    keras.utils.set_random_seed(3)
    inputs = layers.Input((64, 4))
    at = layers.Conv1D(8, 3, padding="causal", activation="relu")(inputs)
    at = layers.SeparableConv1D(16, 5, padding="same", activation="swish")(at)
    at = layers.GlobalAveragePooling1D()(layers.MaxPooling1D(2)(at))
    return keras.Model(inputs, layers.Dense(3, activation="tanh")(at)), _random(64, 4)


def _random(*shape: int) -> Array:
    return np.random.default_rng(0).normal(0, 1, (48, *shape)).astype(np.float32)


MODELS: dict[str, tuple[Callable[[], tuple[keras.Model, Array]], str]] = {
    "keras-cnn": (cnn, "NHWC, trained on digits"),
    "keras-autoencoder": (autoencoder, "trained on digits"),
    "keras-ds_cnn": (ds_cnn, "NHWC, random weights"),
    "keras-segmentation": (segmentation, "NHWC, random weights"),
    "keras-sound": (sound, "random weights"),
}


def exported(model: keras.Model) -> onnx.ModelProto:
    """Return what Keras writes."""
    with tempfile.TemporaryDirectory() as name:
        path = str(Path(name) / "model.onnx")
        model.export(path, format="onnx", verbose=False)
        return onnx.load(path)


def main(arguments: Sequence[str]) -> None:
    """Write the models to a folder."""
    folder, words = Path(arguments[0]), arguments[1:]
    keras.utils.set_random_seed(2026)
    for name, (build, note) in MODELS.items():
        if not all(word in name for word in words):
            continue
        model, inputs = build()
        model(inputs[:1])
        made = exported(model)
        source = made.graph.input[0].name
        samples = [{source: each[None]} for each in inputs[:8]]
        exporter = f"Keras {keras.__version__}"
        store(folder, name, made, samples, exporter=exporter, form="float32", note=note)
        for form in FORMS:
            written = quantised(made, [{source: each[None]} for each in inputs[8:40]], form)
            full = f"{name}-{'qop' if form.operators else 'qdq'}-{form.activations[1:].lower()}"
            store(
                folder,
                full,
                written,
                samples,
                exporter=f"{exporter}, quantize_static",
                form=form.description,
                note=note,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
