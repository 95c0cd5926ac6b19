# SPDX-License-Identifier: Apache-2.0
"""The results of `ferrule quantize` as data, and what they show."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ferrule._frozen import frozen
from ferrule._typing import override
from ferrule.graph import brief
from ferrule.report.base import Document, Measure, Row, flat
from ferrule.report.document import ModelPart
from ferrule.report.evaluation_document import DataPart
from ferrule.report.picture import EnvironmentPart, surroundings
from ferrule.report.sections import (
    Cell,
    Column,
    Facts,
    Part,
    State,
    Table,
    Text,
    joined,
    names,
    numbers,
    page_part,
    part,
    plural,
    share,
)

QUANTIZATION_SCHEMA_VERSION = 1
_WORST_LISTED = 5
_POOR_DB = 20.0
"""A signal to noise ratio that is worth a look: an error of a tenth of the signal."""


@frozen
class LossPart:
    """What an input or a layer loses, over the elements of its first output in the samples that were compared."""

    name: str
    type: str
    """The layer's type, or "input"."""
    tensor: str
    """The tensor, which both models have."""
    dtype: str
    """What it is stored as."""
    rms: float
    """The root mean square of the float model's values."""
    error: float
    """That of the differences from it."""
    own_error: float | None
    """The same for a layer that reads the float model's values: what the layer adds itself; None if it has a state."""
    saturated: float | None
    """The share of the values that the range cuts off, 0 to 1; None for float32."""
    unused: float | None
    """The share of the range that no value reaches, 0 to 1; None for float32."""

    @property
    def sqnr_db(self) -> float | None:
        """The signal to quantisation noise ratio, in decibels; None if one of them is 0."""
        return _decibels(self.rms, self.error)

    @property
    def own_db(self) -> float | None:
        """The ratio for what the layer adds itself; None if it is not known, or 0."""
        return None if self.own_error is None else _decibels(self.rms, self.own_error)


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
    environment: EnvironmentPart | None = None

    @override
    def measures(self) -> Iterator[Measure]:
        yield Measure("constants", self.integer_bytes, unit="B")
        yield Measure("layers in float32", len(self.floats))
        for each in self.losses:
            yield Measure("SQNR", each.sqnr_db, "layer", each.name, each.type, unit="dB", better="higher")

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
        return Part(
            self.model.name,
            (
                self._losses(),
                *self._worst(),
                self._floats(),
                Text(f"{plural(self.layers, 'layer')} in {self.scheme}, {saved}", "model"),
                Text(f"{plural(self.data.samples, 'sample')} of {self.data.source}, by {self.ranges}", "ranges"),
                page_part("Data", self._facts()),
                surroundings(self.environment),
            ),
            what="Quantisation",
            about=f"{self.scheme}, calibrated with {plural(self.data.samples, 'sample')} of {self.data.source}",
        )

    def _losses(self) -> Part | None:
        rows = [
            (
                str(index),
                each.name,
                each.type,
                each.dtype,
                _cell(each.sqnr_db, each),
                "" if each.own_db is None else f"{each.own_db:.1f}",
                "" if not each.saturated else f"{each.saturated:.2%}",
                share(each.unused),
            )
            for index, each in enumerate(self.losses)
        ]
        table = Table(
            f"against the float model, on {plural(self.compared, 'sample')}",
            (
                *numbers("#"),
                *names("layer", "type", "stored as"),
                *numbers("SQNR, dB", "own, dB"),
                Column("cut off", sparse=True),
                *numbers("range unused", spare=1),
            ),
            rows,
        )
        return part("Losses", table) if rows else None

    def _worst(self) -> Iterator[Text]:
        """Yield where most is lost, in words."""
        if self.losses:
            last = self.losses[-1]
            yield Text(_ratio(last), f"output '{last.tensor}'")
        known = [(each.own_db, each) for each in self.losses if each.own_db is not None]
        found = sorted(known, key=lambda each: each[0])[:_WORST_LISTED]
        if found:
            items = [f"{each.name} {each.type}: {ratio:.1f} dB" for ratio, each in found]
            yield Text("the layers that add most noise themselves", "losses", items=items)

    def _floats(self) -> Part | None:
        if not self.floats:
            return None
        rows = [(each.name, each.type, each.reason) for each in self.floats]
        return part("Float layers", Table("layers that stay in float32", (*names("layer", "type"), "why"), rows))

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


def _decibels(signal: float, noise: float) -> float | None:
    return 20 * math.log10(signal / noise) if signal > 0 and noise > 0 else None


def _ratio(loss: LossPart) -> str:
    if loss.sqnr_db is not None:
        return f"{loss.sqnr_db:.1f} dB of signal to quantisation noise"
    return "equal to the float model" if loss.error == 0 else f"0 in the float model, and off by {loss.error:.3g}"


def _cell(ratio: float | None, loss: LossPart) -> Cell:
    if ratio is None:
        return Cell("exact" if loss.error == 0 else "no signal")
    return Cell(f"{ratio:.1f}", State.WARN if ratio < _POOR_DB else None)
