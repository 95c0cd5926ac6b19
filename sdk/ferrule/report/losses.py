# SPDX-License-Identifier: Apache-2.0
"""What inputs and layers lose by quantisation, as data, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ferrule._frozen import frozen
from ferrule.report.sections import (
    Align,
    Cell,
    Column,
    Section,
    State,
    Table,
    Text,
    names,
    numbers,
    part,
    plural,
    share,
)

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
        return decibels(self.rms, self.error)

    @property
    def own_db(self) -> float | None:
        """The ratio for what the layer adds itself; None if it is not known, or 0."""
        return None if self.own_error is None else decibels(self.rms, self.own_error)


def losses_sections(losses: Sequence[LossPart], compared: int) -> Iterator[Section]:
    """Yield what is lost on so many samples, and where most of it; nothing if nothing was measured."""
    if not losses:
        return
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
        for index, each in enumerate(losses)
    ]
    table = Table(
        f"against the float model, on {plural(compared, 'sample')}",
        (
            *numbers("#"),
            *names("layer"),
            Column("type", Align.NAME, drop=3),
            Column("stored as", Align.NAME, drop=1),
            *numbers("SQNR, dB", "own, dB"),
            Column("cut off", sparse=True),
            *numbers("range unused", spare=1),
        ),
        rows,
    )
    yield from filter(None, [part("Losses", table)])
    last = losses[-1]
    yield Text(_ratio(last), f"output '{last.tensor}'")
    known = [(each.own_db, each) for each in losses if each.own_db is not None]
    found = sorted(known, key=lambda each: each[0])[:_WORST_LISTED]
    if found:
        items = [
            f"{'' if each.type == each.name else each.type} {each.name}: {ratio:.1f} dB".lstrip()
            for ratio, each in found
        ]
        yield Text("the layers that add most noise themselves", "losses", items=items)


def decibels(signal: float, noise: float) -> float | None:
    """Return a ratio of root mean squares in decibels; None if one of them is 0."""
    return 20 * math.log10(signal / noise) if signal > 0 and noise > 0 else None


def _ratio(loss: LossPart) -> str:
    if loss.sqnr_db is not None:
        return f"{loss.sqnr_db:.1f} dB of signal to quantisation noise"
    return "equal to the float model" if loss.error == 0 else f"0 in the float model, and off by {loss.error:.3g}"


def _cell(ratio: float | None, loss: LossPart) -> Cell:
    if ratio is None:
        return Cell("exact" if loss.error == 0 else "no signal")
    return Cell(f"{ratio:.1f}", State.WARN if ratio < _POOR_DB else None)
