# SPDX-License-Identifier: Apache-2.0
"""The request for data that the reader of each form gets."""

from __future__ import annotations

from ferrule._frozen import frozen
from ferrule.errors import InputError
from ferrule.evaluation.data.conversion import Conversion
from ferrule.graph import TensorInfo
from ferrule.interface import either
from ferrule.running.data_settings import DataSettings


@frozen
class Wanted:
    """What the user has asked for, and the model's tensors."""

    labels: str | None
    sequence: str | None
    settings: DataSettings
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    limit: int | None

    @property
    def conversions(self) -> list[Conversion]:
        """The conversion to each input; FerruleError if the settings are wrong."""
        return [Conversion.of(info, self.settings) for info in self.inputs]

    @property
    def single(self) -> TensorInfo:
        """The model's only input; InputError if it has several."""
        if len(self.inputs) != 1:
            each = either("--data NAME=FILE.npy", 'data=["NAME=FILE.npy", ...] with one')
            raise InputError(
                f"the model has {len(self.inputs)} inputs, and this form of data has values for one",
                hint=f"give an .npz file with an array per input, or {each} for each",
            )
        return self.inputs[0]
