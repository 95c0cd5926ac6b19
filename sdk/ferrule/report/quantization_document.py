# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule quantize` as data, and what they show."""

from __future__ import annotations

from collections.abc import Iterator

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.graph import brief
from ferrule.report.base import Document, Measure, Row, flat
from ferrule.report.document import ModelPart
from ferrule.report.evaluation_document import DataPart, EvaluationDocument
from ferrule.report.losses import LossPart, decibels, losses_sections
from ferrule.report.picture import EnvironmentPart, surroundings
from ferrule.report.sections import (
    Facts,
    Part,
    Section,
    Table,
    Text,
    joined,
    names,
    page_part,
    part,
    plural,
)

QUANTIZATION_SCHEMA_VERSION = 1


@frozen
class RangesPart:
    """A rule of ranges that was tried."""

    rule: str
    noise: float
    """The root mean square of the outputs' differences from the float model's, by that of its outputs."""

    @property
    def sqnr_db(self) -> float | None:
        """The signal to quantisation noise ratio of the outputs, in decibels; None if they are equal."""
        return decibels(1.0, self.noise)


@frozen
class EqualisationPart:
    """Channels between two layers, multiplied by powers of two so that they share a range better."""

    channels: int
    """How many have another factor than 1."""
    layers: int
    """How many layers write them."""
    taken: bool = True
    """Whether the model has them so."""
    noise: float | None = None
    """As that of `RangesPart`, with them; None if the user asked for them, so that nothing was compared."""
    without: float | None = None
    """The noise without them."""

    @property
    def text(self) -> str:
        """What was done, in words."""
        if not self.channels:
            return "there are no channels to equalise"
        what = f"{plural(self.channels, 'channel')} of {plural(self.layers, 'layer')}"
        if self.noise is None or self.without is None:
            return f"{what} equalised"
        ratios = [decibels(1.0, each) for each in (self.noise, self.without)]
        first, second = ("exact" if each is None else f"{each:.1f} dB" for each in ratios)
        return f"{what} {'' if self.taken else 'not '}equalised: {first} with them so, {second} without"


@frozen
class FloatLayerPart:
    """A layer that stays in float32."""

    name: str
    """In the float model."""
    type: str
    reason: str


@frozen
class QuantizationDocument(Document):
    """All results of one `ferrule quantize`."""

    kind: str = "quantization"
    schema_version: int = QUANTIZATION_SCHEMA_VERSION
    ferrule_version: str
    model: ModelPart
    """The float model."""
    data: DataPart
    """The samples by which ranges were chosen."""
    scheme: str
    io: str
    ranges: str
    """How ranges follow from the values, such as "minmax" or "percentile=99.99"."""
    tried: tuple[RangesPart, ...] = ()
    """The rules of which that one had the least noise; empty if the user named it."""
    equalisation: EqualisationPart | None = None
    """None if it was not asked for, and there was nothing to choose from."""
    keep: tuple[str, ...] = ()
    """The layers that were to have another precision, as the user named them."""
    layers: int
    """The number of layers of the quantised model."""
    float_bytes: int
    """The constants of the float model."""
    integer_bytes: int
    """Those of the quantised model."""
    floats: tuple[FloatLayerPart, ...] = ()
    compared: int
    """The number of samples by which the losses were measured."""
    losses: tuple[LossPart, ...] = ()
    """Of the inputs and layers, in the order of execution."""
    evaluation: EvaluationDocument | None = None
    """The quantised model on the samples that chose the ranges, with the float model beside it; None without labels."""
    environment: EnvironmentPart | None = None

    @override
    def measures(self) -> Iterator[Measure]:
        for name, text in (("scheme", self.scheme), ("inputs and outputs", self.io), ("ranges", self.ranges)):
            yield Measure(name, text)
        yield Measure("kept", joined(*self.keep) or "none")
        yield Measure("constants", self.integer_bytes, unit="B")
        yield Measure("layers in float32", len(self.floats))
        if self.evaluation is not None:
            yield from self.evaluation.measures()
        for each in self.losses:
            yield Measure("SQNR", each.sqnr_db, "layer", each.name, each.type, unit="dB", better="higher")
            yield Measure("own SQNR", each.own_db, "layer", each.name, each.type, unit="dB", better="higher")
            yield Measure("stored as", each.dtype, "layer", each.name, each.type)

    @override
    def table_rows(self) -> Iterator[Row]:
        for each in self.losses:
            ratios: Row = {"sqnr_db": each.sqnr_db, "own_db": each.own_db}
            yield {"model": self.model.name, "row": "layer", **flat(each), **ratios}
        for left in self.floats:
            yield {"model": self.model.name, "row": "float layer", **flat(left)}

    @override
    def sections(self) -> Part:
        saved = f"{self.float_bytes:,} B of constants became {self.integer_bytes:,} B"
        stored = f"{plural(self.layers - len(self.floats), 'layer')} in {self.scheme}"
        stored = joined(stored, f"{len(self.floats):,} in float32" if self.floats else "", by=" and ")
        return Part(
            self.model.name,
            (
                *losses_sections(self.losses, self.compared),
                *self._evaluated(),
                self._floats(),
                Text(f"{stored}, {saved}", "model"),
                self._ranges(),
                None if self.equalisation is None else Text(self.equalisation.text, "channels"),
                page_part("Data", self._facts()),
                surroundings(self.environment),
            ),
            what="Quantisation",
            about=f"{self.scheme}, calibrated with {plural(self.data.samples, 'sample')} of {self.data.source}",
        )

    def _evaluated(self) -> Iterator[Section]:
        """Yield the metrics of both models, and the samples whose label has changed."""
        if self.evaluation is not None:
            yield from self.evaluation.against_float()
            yield Text("the metrics are of the samples that chose the ranges; others judge the model better", "note")

    def _floats(self) -> Part | None:
        if not self.floats:
            return None
        rows = [(each.name, each.type, each.reason) for each in self.floats]
        return part("Float layers", Table("layers that stay in float32", (*names("layer", "type"), "why"), rows))

    def _ranges(self) -> Text:
        """Return by what the ranges were chosen, and what the other rules lose."""
        text = f"{plural(self.data.samples, 'sample')} of {self.data.source}, by {self.ranges}"
        items = [f"{each.rule}: {'exact' if each.sqnr_db is None else f'{each.sqnr_db:.1f} dB'}" for each in self.tried]
        return Text(f"{text}, chosen from {len(items)} rules" if items else text, "ranges", items=items)

    def _facts(self) -> Facts:
        return Facts.known(
            {
                "data": self.data.source,
                "form": self.data.form,
                "preparation": joined(*self.data.preparation, by="; "),
                "inputs and outputs": self.io,
                "kept": joined(*self.keep),
                "data digest": self.data.digest,
                "model digest": self.model.digest,
            }
        )

    @override
    def __repr__(self) -> str:
        left = f", {len(self.floats)} in float32" if self.floats else ""
        return f"<{type(self).__name__} {brief(self.model.name)}: {self.layers} layers in {self.scheme}{left}>"
