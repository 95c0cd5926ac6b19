# SPDX-License-Identifier: Apache-2.0
"""CIRCULAR_BUFFER: the frames of the last runs, and a count of the runs."""

from __future__ import annotations

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, Kept, LayerType
from ferrule.operators.movement.checks import check_alike, expect_type
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_array
from ferrule.operators.sample import LayerSample

FRAMES, COUNT = 1, 2
"""The positions of the states among the inputs and outputs; there is a count if the period is longer than 1 run."""
MOST_CYCLES = 1 << 15


@frozen
class CircularBufferDescriptor(Descriptor):
    """Inputs: a frame [1, 1, width, depth], the old frames [1, slots, width, depth], and the old count.

    Outputs: the new frames, the oldest first, twice, as the result and the state; and the new count [1], which goes
    from 0 to cycles - 1.
    """

    slots: int
    cycles: int = 1
    """The period in runs; only a count if it is longer than 1: what depends on it is another layer's part."""


def kept_by(descriptor: CircularBufferDescriptor, operands: Operands) -> tuple[Kept, ...]:
    """Return the states of a layer."""
    frame = operands.inputs[0]
    if frame is None or len(frame.shape) != 4 or descriptor.slots < 1:
        raise ModelError(f"its frame has shape {[] if frame is None else list(frame.shape)}, expected 4 axes")
    shape = (frame.shape[0], descriptor.slots, *frame.shape[2:])
    frames = Kept(role="frames", shape=shape, dtype=frame.dtype, quantization=frame.quantization)
    if descriptor.cycles == 1:
        return (frames,)
    return frames, Kept(role="count", shape=(1,), dtype=DataType.INT32)


def _infer(descriptor: CircularBufferDescriptor, operands: Operands) -> Shapes:
    frame, frames = operands.source, operands.input(FRAMES)
    if len(frame.shape) != 4 or frame.shape[:2] != (1, 1):
        raise UnsupportedError(f"frame '{frame.name}' has shape {list(frame.shape)}, expected [1, 1, width, depth]")
    wanted = (1, descriptor.slots, *frame.shape[2:])
    if descriptor.slots < 1 or frames.shape != wanted:
        raise ModelError(f"frames '{frames.name}' have shape {list(frames.shape)}, expected {list(wanted)}")
    if descriptor.cycles == 1:
        return wanted, wanted
    return wanted, wanted, operands.input(COUNT).shape


def _check(descriptor: CircularBufferDescriptor, operands: Operands) -> None:
    frame = operands.source
    if not 0 < descriptor.cycles <= MOST_CYCLES:
        raise ModelError(f"its period is {descriptor.cycles} runs, expected 1 to {MOST_CYCLES}")
    expect_type(frame, DataType.INT8)
    for info in (operands.input(FRAMES), *operands.outputs[:COUNT]):
        check_alike(info, frame)
    if descriptor.cycles > 1:
        for info in (operands.input(COUNT), operands.outputs[COUNT]):
            if info.dtype is not DataType.INT32 or info.shape != (1,):
                raise UnsupportedError(f"tensor '{info.name}' is {info.dtype}{list(info.shape)}, expected int32[1]")


def _kernel(descriptor: CircularBufferDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    frame, frames = required_array(arrays, 0), required_array(arrays, FRAMES)
    new = np.concatenate([frames[:, 1:], frame], axis=1)
    if descriptor.cycles == 1:
        return [new, new.copy()]
    count = required_array(arrays, COUNT) + np.int32(1)
    return [new, new.copy(), np.where(count >= descriptor.cycles, np.int32(0), count)]


def _sample(sample: LayerSample) -> Descriptor:
    dice = sample.dice
    frame = sample.take((1, 1, dice.randint(1, 4), dice.randint(1, 8)))
    descriptor = CircularBufferDescriptor(slots=dice.randint(1, 6), cycles=dice.choice([1, 1, 2, 3]))
    for kept in kept_by(descriptor, Operands((frame,))):
        sample.inputs.append(kept.info(kept.role))
    sample.output = frame.quantization
    sample.further = [(frame.dtype, frame.quantization), (DataType.INT32, None)]
    return descriptor


CIRCULAR_BUFFER = Operator(
    descriptor=CircularBufferDescriptor,
    type=LayerType.CIRCULAR_BUFFER,
    states=kept_by,
    shapes=_infer,
    check=_check,
    kernel=_kernel,
    sample=_sample,
)
