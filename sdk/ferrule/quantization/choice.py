# SPDX-License-Identifier: Apache-2.0
"""Chooses among several quantised forms of a network: by other rules of ranges, and with channels equalised or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cached_property

from ferrule._frozen import frozen
from ferrule.errors import FerruleError
from ferrule.evaluation.data import DataSet
from ferrule.graph import Array
from ferrule.interface import name_of
from ferrule.network import Network
from ferrule.progress import Progress, Step
from ferrule.quantization.form import FloatForm
from ferrule.quantization.observation import Observation, observed
from ferrule.quantization.outputs import noise, real_outputs
from ferrule.quantization.precision import Precision
from ferrule.quantization.ranges import Range, RangeRule
from ferrule.report.quantization_document import EqualisationPart, RangesPart

JUDGED = 256
"""The most samples by which forms are compared."""
_CLEARLY = 1.06
"""Half a decibel: a difference below it says more about the samples than about the forms."""


class Equalise(StrEnum):
    """Whether channels are equalised."""

    AUTO = "auto"
    """If that loses less."""
    ON = "on"
    OFF = "off"

    @classmethod
    def parse(cls, text: str, precision: Precision) -> Equalise:
        """Return what a text states; "auto" is for int8 alone, as several rules of ranges are.

        Raises:
            FerruleError: it is another text.
        """
        if text not in set(cls):
            raise FerruleError(f"{name_of('equalise')} is '{text}', expected {cls.AUTO}, {cls.ON} or {cls.OFF}")
        return cls.OFF if text == cls.AUTO and precision is not Precision.INT8 else cls(text)


@frozen
class Quantized:
    """A network in integers, by ranges of which rule."""

    form: FloatForm
    """The float network, whose tensors have the same names."""
    rule: RangeRule
    ranges: Mapping[str, Range]
    network: Network
    reasons: Mapping[str, str]
    """Why layers stay in float, by tensor."""
    tried: tuple[RangesPart, ...] = ()
    """What each rule loses, if there were several."""
    equalisation: EqualisationPart | None = None
    """None if it was not wanted, or if there was nothing to choose from."""


class Choice:
    """The quantised forms of a network, compared by the noise at the outputs.

    That is of the data, or of samples of it at equal distances; a model with state reads the first ones.
    """

    def __init__(
        self, form: FloatForm, own: Mapping[str, Precision], io: Precision, data: DataSet, progress: Progress
    ) -> None:
        """Choose among forms of `form`; `own` are the precisions of the layers of `form.normal` by name."""
        self._form, self._own, self._io = form, own, io
        self._data, self._progress = data, progress

    def best(self, rules: Sequence[RangeRule], equalise: Equalise) -> Quantized:
        """Return the network by the rule with the least noise; by the first, unless that is clearly worse.

        By `Equalise.AUTO`, channels are equalised if the noise by that rule is clearly less then.
        """
        observation = self._observed(self._form, rules)
        if equalise is Equalise.OFF:
            return self._by_best_rule(self._form, observation, rules)
        form, changed = self._form.equalised(observation.peaks)
        part = EqualisationPart(channels=changed.channels, layers=changed.layers)
        if equalise is Equalise.ON:
            done = self._by_best_rule(form, self._observed(form, rules), rules)
            return replace(done, equalisation=part)
        done = self._by_best_rule(self._form, observation, rules)
        if not changed.channels:
            return done
        other = self._made(form, self._observed(form, [done.rule]), done.rule)
        without, with_ = self._noise(done), self._noise(other)
        taken = with_ * _CLEARLY < without
        part = replace(part, taken=taken, noise=with_, without=without)
        return replace(other if taken else done, tried=done.tried, equalisation=part)

    def _observed(self, form: FloatForm, rules: Sequence[RangeRule]) -> Observation:
        return observed(form.normal, self._data, rules, form.names, self._progress)

    def _by_best_rule(self, form: FloatForm, observation: Observation, rules: Sequence[RangeRule]) -> Quantized:
        self._progress(Step(phase="quantising the layers"))
        made = [self._made(form, observation, rule) for rule in rules]
        if len(made) == 1:
            return made[0]
        losses = [self._noise(each) for each in made]
        least = min(losses)
        best = made[0 if losses[0] <= _CLEARLY * least else losses.index(least)]
        tried = tuple(RangesPart(rule=str(each.rule), noise=loss) for each, loss in zip(made, losses, strict=True))
        return replace(best, tried=tried)

    def _made(self, form: FloatForm, observation: Observation, rule: RangeRule) -> Quantized:
        ranges = observation.ranges(rule, self._own)
        network, reasons = form.quantized(ranges, self._own, self._io)
        return Quantized(form=form, rule=rule, ranges=ranges, network=network, reasons=reasons)

    def _noise(self, made: Quantized) -> float:
        what = f"ranges by {made.rule}{'' if made.form is self._form else ', with channels equalised'}"
        network = made.form.with_own_outputs(made.network)
        return noise(self._real, real_outputs(network, self._some, self._progress, what))

    @cached_property
    def _some(self) -> DataSet:
        """The samples by which forms are compared."""
        whole = len(self._data)
        count = min(JUDGED, whole)
        begins = bool(self._form.normal.states)
        return self._data.only(index if begins else index * whole // count for index in range(count))

    @cached_property
    def _real(self) -> tuple[Array, ...]:
        return real_outputs(self._form.normal, self._some, self._progress, "float model")
