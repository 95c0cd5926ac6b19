# SPDX-License-Identifier: Apache-2.0
"""Metrics that users write: FILE.py:function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ferrule.errors import FerruleError
from ferrule.evaluation.data.generator import user_function
from ferrule.evaluation.intervals import Confidence
from ferrule.evaluation.metrics import mean
from ferrule.graph import Array
from ferrule.interface import either
from ferrule.reading import is_file, near_names
from ferrule.report.evaluation_document import MetricPart

CustomMetric = Callable[[list[Array], Array], object]
"""From all outputs in real units, joined along the first axis, and the labels to a number, or one number per sample."""

_METRIC = either("--metric", "metric")


def load_metric(text: str) -> CustomMetric:
    """Return the function of "FILE.py:function"; its file is run.

    Raises:
        FerruleError: there is no such file or function, or the file fails.
    """
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or not name or not is_file(path):
        hint = near_names(path) if file and name else "expected FILE.py:function"
        raise FerruleError(f"{_METRIC} {text}: there is no file {file or text}", hint=hint)
    if path.suffix != ".py":
        raise FerruleError(f"{_METRIC} {text}: {path} is no Python file", hint="its name has to end with .py")
    try:
        chosen: CustomMetric = user_function(path, name)
    except FerruleError as error:
        error.at(f"{_METRIC} {text}")
        raise
    except Exception as error:
        raise FerruleError(f"{_METRIC} {text}: {path} fails: {type(error).__name__}: {error}") from error
    return chosen


def custom_metric(
    text: str, function: CustomMetric, outputs: list[Array], labels: Array, confidence: Confidence
) -> MetricPart:
    """Return what a user's metric computes; one number per sample gives their mean with a bootstrap interval.

    The function's attribute `better`, "higher" (the default) or "lower", says which values are better.

    Raises:
        FerruleError: the function fails, or returns something else.
    """
    name, better = text.rpartition(":")[2], str(getattr(function, "better", "higher"))
    if better not in {"higher", "lower"}:
        raise FerruleError(f"{_METRIC} {text}: the function's attribute better is '{better}', expected higher or lower")
    try:
        result = np.asarray(function(outputs, labels), dtype=np.float64)
    except Exception as error:
        raise FerruleError(f"{_METRIC} {text} fails: {type(error).__name__}: {error}") from error
    if result.shape == (len(labels),) and len(labels) > 1:
        return mean(name, result, confidence, better=better)
    if result.size != 1:
        raise FerruleError(
            f"{_METRIC} {text} returned values of shape {list(result.shape)}, expected a number, or one for each of "
            f"the {len(labels)} samples"
        )
    value = float(result.reshape(()))
    if not np.isfinite(value):
        return MetricPart(name=name, value=None, better=better, note=f"the function returned {value}")
    return MetricPart(name=name, value=value, better=better, note="no interval: the function returned one number")
