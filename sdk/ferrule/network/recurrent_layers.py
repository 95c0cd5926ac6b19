# SPDX-License-Identifier: Apache-2.0
"""Methods that add layers with a state of their own, which lives from run to run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ferrule.errors import ModelError
from ferrule.graph import Array, DataType, Kept, Quantization
from ferrule.network.builder import Constant, Given, LayerBuilder, bias_quantization
from ferrule.operators.activation import Activation
from ferrule.operators.operator import Operands
from ferrule.operators.recurrent.circular_buffer import CircularBufferDescriptor, kept_by
from ferrule.operators.recurrent.lstm import ABSENT, GATES, LstmDescriptor
from ferrule.operators.recurrent.svdf import SvdfDescriptor


class RecurrentLayers(LayerBuilder):
    """Methods that add layers with a state.

    Each method adds the state, too, with the name of the layer and of its role, such as `svdf_0_state`; its value after
    a reset is 0, or the zero point. The state's quantisation is given by the caller; see `ActivationLayers` for the
    names and the errors.
    """

    def add_svdf_layer(
        self,
        source: str,
        feature_weights: Array,
        time_weights: Array,
        bias: Array | None = None,
        *,
        rank: int = 1,
        activation: Activation = Activation.NONE,
        feature_quantization: Quantization | None = None,
        time_quantization: Quantization | None = None,
        state_quantization: Quantization | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add SVDF, with feature weights [filters, in], time weights [filters, frames] and bias [filters / rank].

        The state has the type of the time weights.
        """
        if time_weights.ndim != 2:
            raise ModelError(f"time weights have shape {list(time_weights.shape)}, expected 2 axes")
        summed = None
        if state_quantization is not None and time_quantization is not None:
            summed = Quantization.of(state_quantization.scale * time_quantization.scale)
        inputs: list[Given] = [
            source,
            Constant(role="feature_weights", data=feature_weights, quantization=feature_quantization),
            Constant(role="time_weights", data=time_weights, quantization=time_quantization),
            None if bias is None else Constant(role="bias", data=bias, quantization=summed),
            Kept(
                role="state",
                shape=(self.info(source).shape[0], time_weights.size),
                dtype=DataType(str(time_weights.dtype)),
                quantization=state_quantization,
            ),
        ]
        descriptor = SvdfDescriptor(rank=rank, activation=activation)
        return self._append(descriptor, inputs, name=name, quantization=quantization)[0]

    def add_circular_buffer_layer(self, source: str, slots: int, *, name: str | None = None) -> str:
        """Add CIRCULAR_BUFFER of frames [1, 1, width, depth]: the frames of the last runs, the oldest first.

        The output [1, slots, width, depth] has the quantisation of the frames.
        """
        info = self.info(source)
        descriptor = CircularBufferDescriptor(slots=slots)
        kept = kept_by(descriptor, Operands((info,)))
        return self._append(descriptor, [source, *kept], name=name, quantization=info.quantization)[0]

    def add_lstm_layer(
        self,
        source: str,
        weights: Sequence[Array],
        recurrent_weights: Sequence[Array],
        biases: Sequence[Array],
        *,
        time_major: bool = False,
        cell_clip: float = 0.0,
        weights_quantizations: Sequence[Quantization] | None = None,
        recurrent_quantizations: Sequence[Quantization] | None = None,
        cell_quantization: Quantization | None = None,
        quantization: Quantization | None = None,
        name: str | None = None,
    ) -> str:
        """Add UNIDIRECTIONAL_SEQUENCE_LSTM of [batch, time, in], or [time, batch, in] if time is major.

        Weights [units, in], recurrent weights [units, units] and biases [units] are in the order input, forget, cell,
        output. The hidden state has the output's quantisation.
        """
        for role, arrays in (("weights", weights), ("recurrent weights", recurrent_weights), ("biases", biases)):
            if len(arrays) != len(GATES):
                raise ModelError(f"an LSTM got {len(arrays)} {role}, expected {len(GATES)}")
        info = self.info(source)
        absent: list[Quantization | None] = [None] * len(GATES)
        first = weights_quantizations or absent
        second = recurrent_quantizations or absent
        state = (info.shape[1 if time_major else 0] if len(info.shape) == 3 else 1, len(biases[0]))
        cell_type = info.dtype if info.dtype.is_float else DataType.INT16
        inputs: list[Given] = [
            source,
            *_constants("weights", weights, first),
            *_constants("recurrent_weights", recurrent_weights, second),
            *[None] * 3,
            *_constants("bias", biases, [bias_quantization(info, each) for each in first]),
            *[None] * 2,
            Kept(role="hidden", shape=state, dtype=info.dtype, quantization=quantization),
            Kept(role="cell", shape=state, dtype=cell_type, quantization=cell_quantization),
        ]
        assert all((each is None) == (index in ABSENT) for index, each in enumerate(inputs))
        descriptor = LstmDescriptor(time_major=time_major, cell_clip=max(float(np.float32(cell_clip)), 0.0))
        return self._append(descriptor, inputs, name=name, quantization=quantization)[0]


def _constants(role: str, arrays: Sequence[Array], quantizations: Sequence[Quantization | None]) -> list[Constant]:
    return [
        Constant(role=f"{role}_{gate}", data=array, quantization=quantization)
        for gate, array, quantization in zip(GATES, arrays, quantizations, strict=True)
    ]
