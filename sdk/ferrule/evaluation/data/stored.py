# SPDX-License-Identifier: Apache-2.0
"""The samples of a float model as a quantised one stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ferrule.evaluation.data.dataset import DataSet, Source
from ferrule.graph import Array, TensorInfo
from ferrule.network import Network


class _Stored:
    """Samples of a float model, as the inputs of a quantised one store them: a `Source`."""

    def __init__(self, real: Source, inputs: Sequence[TensorInfo]) -> None:
        self.real = real
        self.inputs = tuple(inputs)
        self.form = real.form

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done to each sample."""
        return self.real.steps

    def __len__(self) -> int:
        return len(self.real)

    def read(self, indices: Sequence[int]) -> list[Array]:
        """Return samples; raises as the float model's source does."""
        arrays = self.real.read(indices)
        return [
            array if info.quantization is None else info.quantize(array)
            for info, array in zip(self.inputs, arrays, strict=True)
        ]

    def name(self, index: int) -> str:
        """Return the name of a sample."""
        return self.real.name(index)


def stored(data: DataSet, network: Network) -> DataSet:
    """Return the samples of a float model as those of a network with other types of the same inputs."""
    inputs = tuple(network.inputs)
    if inputs == data.inputs:
        return data
    return replace(data, source=_Stored(data.source, inputs), inputs=inputs, _digests=[])
