# SPDX-License-Identifier: Apache-2.0
"""A guess at what a setting is like, from those that were tried: a term per layer and per pair of neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
_RIDGE = 1e-3
"""How much a term costs, in squared units of the values' deviation: it decides where settings tell nothing."""
_STEEPS = (2.0, 4.0, 8.0, 12.0)
"""Of exponential scales: the natural logarithm of the ratio between the largest and the least value."""
_REACH = 4.0
"""Of errors: the number of places in which settings differ, at which their correlation has fallen to 1/e."""
_NUGGET = 0.01
"""The part of errors that settings nearby do not share."""
_LEAST = 1e-6
"""Of values in exponential scales, which are at least 1 but where a model is far off."""
_PAIR = 3.0
"""How much more the term of a pair costs: what a layer's own precision explains is explained by it."""


def features(settings: Sequence[Sequence[int]], levels: int) -> Numbers:
    """Return a row of indicators for each setting, whose entries are the numbers of levels.

    There is one for each level of each place, and one for each pair of neighbours whose levels differ, between which a
    conversion stands.
    """
    chosen = np.asarray(settings, np.intp)
    own = (chosen[:, :, None] == np.arange(levels)).reshape(len(chosen), -1)
    pairs = chosen[:, 1:] != chosen[:, :-1]
    return np.concatenate([own, pairs / _PAIR], axis=1).astype(np.float64)


class _Linear:
    """A linear model, fitted by ridge regression (Hoerl and Kennard, 1970)."""

    def __init__(self, rows: Numbers, values: Numbers) -> None:
        self._mean, self._centre = float(values.mean()), rows.mean(axis=0)
        centred = rows - self._centre
        inverse = np.linalg.inv(centred.T @ centred + _RIDGE * np.eye(rows.shape[1]))
        self._weights = inverse @ (centred.T @ (values - self._mean))
        leverage = np.sum((centred @ inverse) * centred, axis=1) + 1 / len(rows)
        self.left_out = values - (values - self.predict(rows)) / np.maximum(1 - leverage, 1e-3)
        """What the model would expect of each value if it had not seen it (Allen's PRESS residuals, 1974)."""

    def predict(self, rows: Numbers) -> Numbers:
        return np.asarray(self._mean + (rows - self._centre) @ self._weights)


class _Fitted:
    """The model of one objective, in the scale in which it adds up best.

    Noise adds up as power and is judged in decibels, time and bytes add up as they are: the scale, of the values
    themselves or an exponential one, is that whose model errs least for values left out.
    """

    def __init__(self, rows: Numbers, values: Numbers) -> None:
        least, width = float(values.min()), float(np.ptp(values)) or 1.0
        tried = [(_Linear(rows, values), 0.0)]
        tried += [(_Linear(rows, np.exp(steep * (values - least) / width)), steep) for steep in _STEEPS]
        self._least, self._width = least, width
        errors = [float(np.mean(np.abs(self._back(model.left_out, steep) - values))) for model, steep in tried]
        self._model, self._steep = tried[int(np.argmin(errors))]

    def predict(self, rows: Numbers) -> Numbers:
        return self._back(self._model.predict(rows), self._steep)

    def _back(self, scaled: Numbers, steep: float) -> Numbers:
        """Return values of the scale as values of the objective; a steepness of 0 is that of the values themselves."""
        if not steep:
            return scaled
        return np.asarray(self._least + self._width * np.log(np.maximum(scaled, _LEAST)) / steep)


class Surrogate:
    """Models of the objectives, each with corrections by what it errs for settings nearby."""

    def __init__(self, settings: Sequence[Sequence[int]], values: Numbers, levels: int) -> None:
        """Fit the models; `values` has a row per setting and a column per objective."""
        self._levels = levels
        rows = features(settings, levels)
        self._own = len(settings[0]) * levels
        self._known = rows[:, : self._own]
        self._models = [_Fitted(rows, column) for column in values.T]
        errors = values - self._expected(rows)
        near = self._nearness(rows)
        self._corrections = np.linalg.solve(near + _NUGGET * np.eye(len(near)), errors)

    def predict(self, settings: Sequence[Sequence[int]]) -> Numbers:
        """Return the expected values of settings, a row for each."""
        rows = features(settings, self._levels)
        return np.asarray(self._expected(rows) + self._nearness(rows) @ self._corrections)

    def _expected(self, rows: Numbers) -> Numbers:
        return np.stack([model.predict(rows) for model in self._models], axis=1)

    def _nearness(self, rows: Numbers) -> Numbers:
        """Return the correlation of the errors of settings with those of the known ones: less for each other place."""
        own = rows[:, : self._own]
        different = self._own / self._levels - own @ self._known.T
        return np.asarray(np.exp(-different / _REACH))
