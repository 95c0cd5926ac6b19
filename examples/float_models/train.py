# SPDX-License-Identifier: Apache-2.0
"""Trains float networks of several kinds on data of its own, and exports them as ONNX, each with its samples.

    pip install torch onnxscript onnx
    python train.py [movement] [keywords] [vibration] [deep]

For each, it writes NAME.onnx, NAME_cal.npy, for the ranges of a quantisation, and NAME_x.npy with NAME_y.npy, samples
that training has not seen, with their labels. By default, all but `deep` are trained.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

Arrays = tuple[Any, Any]
"""Samples, float32, and their labels, int64."""
Samples = Callable[[np.random.Generator], Arrays]
Loss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Of outputs, samples and labels: what training makes small."""
TRAINED, TESTED, CALIBRATION, EPOCHS = 2400, 800, 200, 10


def movement(random: np.random.Generator) -> Arrays:
    """Return two seconds of an accelerometer, 3 x 128 in m/s^2, of six movements at 64 Hz."""
    count = TRAINED + TESTED
    labels = random.integers(6, size=count)
    hertz = np.array([0.5, 1.1, 1.7, 2.4, 3.2, 4.1])[labels] * random.uniform(0.85, 1.15, count)
    swing = np.array([1.0, 2.0, 3.0, 3.5, 4.0, 5.0])[labels] * random.uniform(0.6, 1.4, count)
    seconds = np.arange(128) / 64
    phase = 2 * np.pi * (hertz[:, None] * seconds + random.random((count, 1)))
    wave = swing[:, None] * (np.sin(phase) + 0.4 * np.sin(2 * phase))
    tilt = random.normal(0, 0.5, (count, 3, 1))
    axes = np.stack([wave, 0.6 * np.roll(wave, 5, axis=1), 9.81 + 0.3 * wave], axis=1)
    return axes + tilt + random.normal(0, 1.6, axes.shape), labels


def keywords(random: np.random.Generator) -> Arrays:
    """Return 49 x 10 coefficients of sounds, each one of eight words, said sooner or later and louder or softer."""
    count = TRAINED + TESTED
    labels = random.integers(8, size=count)
    words = np.cumsum(random.normal(0, 0.16, (8, 33, 10)), axis=1)
    samples = random.normal(0, 1.8, (count, 1, 49, 10))
    for index, label in enumerate(labels):
        start = random.integers(17)
        samples[index, 0, start : start + 33] += random.uniform(0.5, 1.1) * words[label]
    return samples, labels


def vibration(random: np.random.Generator) -> Arrays:
    """Return 64 levels of a machine's spectrum; those of the second kind are of faults, and none is in the training."""
    count = TRAINED + TESTED
    labels = np.where(np.arange(count) < TRAINED, 0, np.arange(count) % 2)
    levels = np.tanh(random.normal(size=(count, 4)) @ random.normal(0, 0.5, (4, 64))) * 3
    levels += random.normal(0, 0.1, levels.shape)
    return levels + labels[:, None] * random.normal(0, 0.32, levels.shape), labels


def separable(channels: int, stride: int = 1) -> list[nn.Module]:
    """Return a convolution in its two halves: of each channel, and across channels."""
    layers: list[nn.Module] = []
    for size, groups, step in ((3, channels, stride), (1, 1, 1)):
        layers += [
            nn.Conv2d(channels, channels, size, step, size // 2, groups=groups),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
        ]
    return layers


def first(channels: int) -> list[nn.Module]:
    """Return the first layers of a network of keywords."""
    return [nn.Conv2d(1, channels, (10, 4), 2, (4, 1)), nn.BatchNorm2d(channels), nn.ReLU()]


def end(channels: int) -> list[nn.Module]:
    """Return the last layers of a network of keywords."""
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 8), nn.Softmax(1)]


def convolutions_of_time(widths: list[int]) -> list[nn.Module]:
    """Return convolutions along an axis of time, each of which halves it."""
    layers: list[nn.Module] = []
    for before, width in itertools.pairwise(widths):
        layers += [nn.Conv1d(before, width, 5, 2, 2), nn.BatchNorm1d(width), nn.ReLU()]
    return layers


def squeezing(widths: list[int]) -> list[nn.Module]:
    """Return layers that have to get an input through a narrow place."""
    layers: list[nn.Module] = []
    for before, width in itertools.pairwise(widths):
        layers += [nn.Linear(before, width), nn.BatchNorm1d(width), nn.ReLU()]
    return layers[:-2]


def of_words(found: torch.Tensor, _samples: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the loss of probabilities."""
    return functional.nll_loss(torch.log(found + 1e-7), labels)


NETWORKS: dict[str, tuple[Samples, Callable[[], list[nn.Module]], Loss]] = {
    "movement": (
        movement,
        lambda: [*convolutions_of_time([3, 16, 24, 32, 32]), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 6)],
        lambda found, _samples, labels: functional.cross_entropy(found, labels),
    ),
    "keywords": (keywords, lambda: [*first(32), *separable(32), *separable(32), *end(32)], of_words),
    "vibration": (
        vibration,
        lambda: squeezing([64, 32, 8, 32, 64]),
        lambda found, samples, _labels: functional.mse_loss(found, samples),
    ),
    "deep": (
        keywords,
        lambda: [*first(24), *(each for index in range(9) for each in separable(24, 2 if index == 4 else 1)), *end(24)],
        of_words,
    ),
}


def train(name: str) -> None:
    """Train a network and write its files."""
    torch.manual_seed(0)
    made, layers, loss = NETWORKS[name]
    values, classes = made(np.random.default_rng(0))
    values, classes = values.astype(np.float32), classes.astype(np.int64)
    samples, labels = torch.from_numpy(values[:TRAINED]), torch.from_numpy(classes[:TRAINED])
    network = nn.Sequential(*layers())
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(TRAINED).split(64):
            optimizer.zero_grad()
            loss(network(samples[chosen]), samples[chosen], labels[chosen]).backward()
            optimizer.step()
    network.eval()
    example = torch.zeros(1, *values.shape[1:])
    torch.onnx.export(
        network,
        (example,),
        f"{name}.onnx",
        input_names=["input"],
        output_names=["output"],
        external_data=False,
        verbose=False,
    )
    np.save(f"{name}_cal.npy", values[:CALIBRATION])
    np.save(f"{name}_x.npy", values[TRAINED:])
    np.save(f"{name}_y.npy", classes[TRAINED:])


if __name__ == "__main__":
    torch.set_num_threads(1)
    for each in sys.argv[1:] or ["movement", "keywords", "vibration"]:
        train(each)
