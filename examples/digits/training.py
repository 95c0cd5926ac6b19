# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on scikit-learn's digits, in numpy.

    image 8x8x1 -> conv 3x3, 8, ReLU -> max pool 2x2 -> conv 3x3, 16, ReLU -> max pool 2x2 -> dense 10

The digits are 1,797 grey images of 8 x 8 pixels with values from 0 to 16 (UCI's "Optical Recognition of Handwritten
Digits", which scikit-learn ships). Every fifth image is held out for the test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # Adam (Kingma and Ba, 2015)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """The data set: images in NHWC order with pixels from 0 to 1, and labels."""

    train_images: Floats
    train_labels: Labels
    test_images: Floats
    test_labels: Labels


def load_digits() -> Digits:
    """Return scikit-learn's digits, with every fifth image in the test set."""
    from sklearn import datasets

    data = datasets.load_digits()
    images = (data.images.astype(np.float32) / 16.0)[..., np.newaxis]
    labels = data.target.astype(np.int64)
    held_out = np.arange(len(labels)) % 5 == 0
    return Digits(
        train_images=images[~held_out],
        train_labels=labels[~held_out],
        test_images=images[held_out],
        test_labels=labels[held_out],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Weights: convolutions OHWI, the dense layer [outputs, inputs]."""

    conv1: Floats
    bias1: Floats
    conv2: Floats
    bias2: Floats
    dense: Floats
    bias3: Floats

    def arrays(self) -> list[Floats]:
        """All arrays, in the order of the fields."""
        return [self.conv1, self.bias1, self.conv2, self.bias2, self.dense, self.bias3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """The outputs of each layer."""

    patches1: Floats
    relu1: Floats
    pool1: Floats
    patches2: Floats
    relu2: Floats
    pool2: Floats
    logits: Floats


def initial(seed: int = 1) -> Parameters:
    """Return random weights (He et al., 2015) and zero biases."""
    random = np.random.default_rng(seed)

    def weights(*shape: int) -> Floats:
        fan_in = int(np.prod(shape[1:]))
        values: Floats = (random.standard_normal(shape) * np.sqrt(2.0 / fan_in)).astype(np.float32)
        return values

    return Parameters(
        conv1=weights(8, 3, 3, 1),
        bias1=np.zeros(8, np.float32),
        conv2=weights(16, 3, 3, 8),
        bias2=np.zeros(16, np.float32),
        dense=weights(10, 64),
        bias3=np.zeros(10, np.float32),
    )


def _patches(images: Floats) -> Floats:
    """Return the 3x3 neighbourhood of every pixel: [N, H, W, 9 * C], zero beyond the border."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = sliding_window_view(padded, (3, 3), axis=(1, 2))  # N, H, W, C, 3, 3
    return np.asarray(windows.transpose(0, 1, 2, 4, 5, 3).reshape(*images.shape[:3], -1))


def _pool(images: Floats) -> Floats:
    n, h, w, c = images.shape
    pooled: Floats = images.reshape(n, h // 2, 2, w // 2, 2, c).max(axis=(2, 4))
    return pooled


def forward(parameters: Parameters, images: Floats) -> Activations:
    """Run the network."""
    patches1 = _patches(images)
    relu1 = np.maximum(patches1 @ parameters.conv1.reshape(8, -1).T + parameters.bias1, 0)
    pool1 = _pool(relu1)
    patches2 = _patches(pool1)
    relu2 = np.maximum(patches2 @ parameters.conv2.reshape(16, -1).T + parameters.bias2, 0)
    pool2 = _pool(relu2)
    logits = pool2.reshape(len(images), -1) @ parameters.dense.T + parameters.bias3
    return Activations(
        patches1=patches1, relu1=relu1, pool1=pool1, patches2=patches2, relu2=relu2, pool2=pool2, logits=logits
    )


def _unpool(gradient: Floats, pooled: Floats, images: Floats) -> Floats:
    """Pass each gradient to the pixels that were the maximum."""
    spread = np.repeat(np.repeat(gradient, 2, axis=1), 2, axis=2)
    chosen = images == np.repeat(np.repeat(pooled, 2, axis=1), 2, axis=2)
    return np.asarray(spread * chosen * (images > 0), np.float32)


def _unpatch(gradient: Floats, channels: int) -> Floats:
    """Add up the gradients of each pixel over all neighbourhoods that contain it."""
    n, h, w, _ = gradient.shape
    parts = gradient.reshape(n, h, w, 3, 3, channels)
    padded = np.zeros((n, h + 2, w + 2, channels), np.float32)
    for row in range(3):
        for column in range(3):
            padded[:, row : row + h, column : column + w] += parts[:, :, :, row, column]
    return padded[:, 1:-1, 1:-1]


def gradients(parameters: Parameters, images: Floats, labels: Labels) -> list[Floats]:
    """Return the gradient of the mean cross-entropy, in the order of `Parameters.arrays`."""
    seen = forward(parameters, images)
    exponentials = np.exp(seen.logits - seen.logits.max(axis=1, keepdims=True))
    error = exponentials / exponentials.sum(axis=1, keepdims=True)
    error[np.arange(len(labels)), labels] -= 1
    error /= len(labels)
    to_pool2 = (error @ parameters.dense).reshape(seen.pool2.shape)
    to_conv2 = _unpool(to_pool2, seen.pool2, seen.relu2)
    to_pool1 = _unpatch(to_conv2 @ parameters.conv2.reshape(16, -1), 8)
    to_conv1 = _unpool(to_pool1, seen.pool1, seen.relu1)
    return [
        (to_conv1.reshape(-1, 8).T @ seen.patches1.reshape(-1, 9)).reshape(parameters.conv1.shape),
        to_conv1.sum(axis=(0, 1, 2)),
        (to_conv2.reshape(-1, 16).T @ seen.patches2.reshape(-1, 72)).reshape(parameters.conv2.shape),
        to_conv2.sum(axis=(0, 1, 2)),
        error.T @ seen.pool2.reshape(len(images), -1),
        error.sum(axis=0),
    ]


def train(digits: Digits, *, epochs: int = 12, batch: int = 32, rate: float = 3e-3, seed: int = 1) -> Parameters:
    """Return trained parameters; they are the same in every run on one machine."""
    parameters = initial(seed)
    random = np.random.default_rng(seed)
    means = [np.zeros_like(array) for array in parameters.arrays()]
    squares = [np.zeros_like(array) for array in parameters.arrays()]
    step = 0
    for _ in range(epochs):
        order = random.permutation(len(digits.train_labels))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            step += 1
            found = gradients(parameters, digits.train_images[chosen], digits.train_labels[chosen])
            scale = rate * np.sqrt(1 - BETA2**step) / (1 - BETA1**step)
            for index, array in enumerate(parameters.arrays()):
                means[index] += (1 - BETA1) * (found[index] - means[index])
                squares[index] += (1 - BETA2) * (found[index] ** 2 - squares[index])
                array[...] -= scale * means[index] / (np.sqrt(squares[index]) + EPSILON)
    return parameters


def accuracy(logits: NDArray[np.generic], labels: Labels) -> float:
    """Return the share of labels whose logit is the largest, 0 to 1."""
    return float((np.asarray(logits).argmax(axis=1) == labels).mean())
