# SPDX-License-Identifier: Apache-2.0
"""The signal library's operators on samples: windows, frames, delays and stacks, most of which keep a state.

TensorFlow Lite Micro keeps the states in ring buffers; here they are the last samples, the oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferrule._frozen import frozen
from ferrule.errors import ModelError, UnsupportedError
from ferrule.graph import Array, DataType, Descriptor, Kept, LayerType, Shape, TensorInfo
from ferrule.graph.real_values import ieee_floats, saturated
from ferrule.operators.arithmetic.error_bound import rounded
from ferrule.operators.movement.checks import expect_types, typed
from ferrule.operators.operator import Arrays, Operands, Operator, Shapes, required_array, required_arrays, same_shape
from ferrule.operators.sample import LayerSample

_MOST = 2**20
"""Limit on the samples of a frame and of a delay."""
_MOST_FRAMES = 2**10
"""Limit on the frames before and behind a frame."""
_MOST_KEPT = 2**24
"""Limit on the elements of a state."""


def expect_axes(info: TensorInfo, least: int, most: int | None = None) -> None:
    """Raise UnsupportedError if a tensor has fewer axes than `least`, or more than `most`."""
    if len(info.shape) < least or (most is not None and len(info.shape) > most):
        wanted = f"{least} or more" if most is None else str(least) if most == least else f"{least} to {most}"
        raise UnsupportedError(f"tensor '{info.name}' has {len(info.shape)} axes, expected {wanted}")


def vector(operands: Operands) -> TensorInfo:
    """Return the first input; UnsupportedError unless it has one axis."""
    expect_axes(operands.source, 1, 1)
    return operands.source


def expect_shape(info: TensorInfo, shape: Shape) -> None:
    """Raise ModelError unless a tensor has this shape."""
    if info.shape != shape:
        raise ModelError(f"tensor '{info.name}' has shape {list(info.shape)}, expected {list(shape)}")


def expect_range(name: str, value: int, low: int, high: int | None = None) -> None:
    """Raise UnsupportedError unless an attribute lies between `low` and `high`, both included."""
    if value < low or (high is not None and value > high):
        wanted = f"{low} or more" if high is None else f"{low} to {high}"
        raise UnsupportedError(f"its {name} is {value}, expected {wanted}")


def _rows(info: TensorInfo) -> int:
    expect_axes(info, 1)
    return info.elements // info.shape[-1]


def _kept(role: str, shape: tuple[int, int], dtype: DataType = DataType.INT16) -> Kept:
    if shape[0] * shape[1] > _MOST_KEPT:
        raise UnsupportedError(f"its state has the shape {list(shape)}, expected at most {_MOST_KEPT} elements")
    return Kept(role=role, shape=shape, dtype=dtype)


_States = Callable[[Any, Operands], Sequence[Kept]]
_FRAMED = typed(
    [DataType.INT16, DataType.INT16, DataType.INT32],
    [DataType.INT16, DataType.BOOL, DataType.INT16, DataType.INT32],
)
"""The check of operators that keep frames and their number, and return whether these are enough."""


def _with_states(
    states: _States, shapes: Callable[[Any, Operands], Shapes] = same_shape
) -> Callable[[Any, Operands], Shapes]:
    """Return the shapes of an operator's outputs, which end with its states; those of the old states are checked."""

    def infer(descriptor: Any, operands: Operands) -> Shapes:  # noqa: ANN401 each operator has its own
        kept = states(descriptor, operands)
        for index, state in enumerate(kept, 1):
            expect_shape(operands.input(index), state.shape)
        return *shapes(descriptor, operands), *(state.shape for state in kept)

    return infer


@frozen
class SignalWindowDescriptor(Descriptor):
    """Inputs: samples [..., N] and weights [N]; output: the products, shifted to the right with saturation."""

    shift: int


def _infer_window(descriptor: SignalWindowDescriptor, operands: Operands) -> Shapes:
    data, weights = operands.pair
    expect_axes(data, 1)
    expect_shape(weights, data.shape[-1:])
    expect_range("shift", descriptor.shift, 0, 31)
    return (data.shape,)


def _window(descriptor: SignalWindowDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    data, weights = required_arrays(arrays, range(2))
    return [saturated((data.astype(np.int64) * weights) >> descriptor.shift, np.int16)]


def _sample_window(sample: LayerSample) -> Descriptor:
    shape = sample.shape()
    sample.take(shape)
    sample.hold("weights", sample.array(shape[-1:], DataType.INT16, -(2**15), 2**15 - 1))
    return SignalWindowDescriptor(shift=sample.dice.choice([0, 3, 12, 15, 31]))


SIGNAL_WINDOW = Operator(
    descriptor=SignalWindowDescriptor,
    type=LayerType.SIGNAL_WINDOW,
    shapes=_infer_window,
    check=typed([DataType.INT16] * 2, [DataType.INT16]),
    kernel=_window,
    sample=_sample_window,
)


@frozen
class SignalFramerDescriptor(Descriptor):
    """Inputs: samples [..., N], the last samples, and the number of frames before the first whole one.

    Outputs: overlapping frames [..., N / step, size], whether all are whole, and the new states. Frames that are not
    whole are 0.
    """

    frame_size: int
    frame_step: int
    prefill: bool
    """Whether zeros precede the first sample, so that the first frame is whole."""

    @property
    def kept(self) -> int:
        """Samples that precede those of a run in its first frame."""
        if self.prefill:
            return self.frame_size - self.frame_step
        return self.missing * self.frame_step

    @property
    def missing(self) -> int:
        """Frames before the first whole one."""
        return 0 if self.prefill else -(-self.frame_size // self.frame_step) - 1


def framer_states(descriptor: SignalFramerDescriptor, operands: Operands) -> tuple[Kept, ...]:
    """Return the last samples, and the number of frames so far up to the first whole one.

    Raises:
        ModelError, UnsupportedError: the descriptor is not valid for the inputs.
    """
    data = operands.source
    expect_axes(data, 1)
    size, step = descriptor.frame_size, descriptor.frame_step
    expect_range("frame_step", step, 1, data.shape[-1])
    expect_range("frame_size", size, step if descriptor.prefill else 1, _MOST)
    if data.shape[-1] % step:
        raise ModelError(f"its frame_step is {step}, expected a divisor of the {data.shape[-1]} samples of a run")
    shape = (_rows(operands.source), max(descriptor.kept, 1))
    return _kept("samples", shape), Kept(role="frames", shape=(), dtype=DataType.INT32)


def _framed(descriptor: SignalFramerDescriptor, operands: Operands) -> Shapes:
    data, size, step = operands.source, descriptor.frame_size, descriptor.frame_step
    return (*data.shape[:-1], data.shape[-1] // step, size), ()


def _framer(descriptor: SignalFramerDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    data, samples, counted = required_arrays(arrays, range(3))
    size, step, kept = descriptor.frame_size, descriptor.frame_step, descriptor.kept
    before = min(max(int(counted), 0), descriptor.missing)
    stream = np.concatenate([samples[:, :kept], data.reshape(samples.shape[0], -1)], axis=1)
    count = data.shape[-1] // step
    frames = np.zeros((samples.shape[0], count, size), np.int16)
    for frame in range(descriptor.missing - before, count):
        frames[:, frame] = stream[:, frame * step : frame * step + size]
    following = stream[:, count * step :] if kept else np.zeros_like(samples)
    return [
        frames.reshape(operands.output.shape),
        np.array(before == descriptor.missing),
        following.copy(),
        np.array(min(before + count, descriptor.missing), np.int32),
    ]


def _sample_framer(sample: LayerSample) -> Descriptor:
    dice = sample.dice
    step, prefill = dice.randint(1, 5), dice.random() < 0.5
    size = step + dice.randint(0, 11) if prefill else dice.randint(1, 14)
    descriptor = SignalFramerDescriptor(frame_size=size, frame_step=step, prefill=prefill)
    sample.take((*sample.shape(2)[:-1], step * dice.randint(1, 4)))
    return take_states(sample, descriptor, framer_states, (DataType.BOOL, None))


def take_states(
    sample: LayerSample,
    descriptor: Descriptor,
    states: _States,
    *outputs: tuple[DataType, None],
) -> Descriptor:
    """Add the states that follow the inputs, and return the descriptor.

    `outputs` are the outputs between the first and the new states.
    """
    kept = states(descriptor, Operands(tuple(sample.inputs)))
    sample.inputs += [state.info(state.role) for state in kept]
    sample.further = [*outputs, *((state.dtype, None) for state in kept)]
    return descriptor


SIGNAL_FRAMER = Operator(
    descriptor=SignalFramerDescriptor,
    type=LayerType.SIGNAL_FRAMER,
    states=framer_states,
    shapes=_with_states(framer_states, _framed),
    check=_FRAMED,
    kernel=_framer,
    sample=_sample_framer,
)


@frozen
class SignalDelayDescriptor(Descriptor):
    """Inputs: samples [..., N] and the last samples; outputs: the samples of `delay_length` before, and the state."""

    delay_length: int


def delay_states(descriptor: SignalDelayDescriptor, operands: Operands) -> tuple[Kept, ...]:
    """Return the last samples; UnsupportedError if their number is not valid."""
    expect_range("delay_length", descriptor.delay_length, 0, _MOST)
    shape = (_rows(operands.source), max(descriptor.delay_length, 1))
    return (_kept("samples", shape),)


def _delay(descriptor: SignalDelayDescriptor, _: Operands, arrays: Arrays) -> list[Array]:
    data, samples = required_arrays(arrays, range(2))
    length, size = descriptor.delay_length, data.shape[-1]
    stream = np.concatenate([samples[:, :length], data.reshape(samples.shape[0], -1)], axis=1)
    following = stream[:, size:] if length else np.zeros_like(samples)
    return [stream[:, :size].reshape(data.shape), following.copy()]


def _sample_delay(sample: LayerSample) -> Descriptor:
    descriptor = SignalDelayDescriptor(delay_length=sample.dice.choice([0, 1, 3, 7, 20]))
    sample.take(sample.shape(3))
    return take_states(sample, descriptor, delay_states)


SIGNAL_DELAY = Operator(
    descriptor=SignalDelayDescriptor,
    type=LayerType.SIGNAL_DELAY,
    states=delay_states,
    shapes=_with_states(delay_states),
    check=typed([DataType.INT16] * 2, [DataType.INT16] * 2),
    kernel=_delay,
    sample=_sample_delay,
)


@frozen
class SignalOverlapAddDescriptor(Descriptor):
    """Inputs: frames [..., frames, size] and sums [rows, size]; outputs: samples [..., frames * step], new sums."""

    frame_step: int


def overlap_add_states(_: SignalOverlapAddDescriptor, operands: Operands) -> tuple[Kept, ...]:
    """Return the sums of the samples that further frames overlap."""
    data = operands.source
    expect_axes(data, 2)
    return (_kept("sums", (_rows(data) // data.shape[-2], data.shape[-1]), data.dtype),)


def _added(descriptor: SignalOverlapAddDescriptor, operands: Operands) -> Shapes:
    shape = operands.source.shape
    expect_range("frame_step", descriptor.frame_step, 1, shape[-1])
    return ((*shape[:-2], shape[-2] * descriptor.frame_step),)


def _check_overlap_add(_: SignalOverlapAddDescriptor, operands: Operands) -> None:
    dtype = operands.source.dtype
    expect_types(operands, [dtype if dtype is DataType.FLOAT32 else DataType.INT16] * 2, [dtype] * 2)


def _overlap_add(descriptor: SignalOverlapAddDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    data, sums = required_array(arrays, 0), required_array(arrays, 1).copy()
    step, outputs = descriptor.frame_step, []
    frames = data.reshape(sums.shape[0], -1, sums.shape[1])
    with ieee_floats():
        for frame in range(frames.shape[1]):
            if sums.dtype == np.float32:
                sums += frames[:, frame]
            else:
                sums = saturated(sums.astype(np.int64) + frames[:, frame], np.int16)
            outputs.append(sums[:, :step])
            sums = np.concatenate([sums[:, step:], np.zeros_like(sums[:, :step])], axis=1)
    return [np.concatenate(outputs, axis=1).reshape(operands.output.shape), sums]


def _sample_overlap_add(sample: LayerSample) -> Descriptor:
    info = sample.take((*sample.shape(2)[:-1], sample.dice.randint(1, 4), sample.dice.randint(1, 9)))
    descriptor = SignalOverlapAddDescriptor(frame_step=sample.dice.randint(1, info.shape[-1]))
    return take_states(sample, descriptor, overlap_add_states)


SIGNAL_OVERLAP_ADD = Operator(
    descriptor=SignalOverlapAddDescriptor,
    type=LayerType.SIGNAL_OVERLAP_ADD,
    states=overlap_add_states,
    shapes=_with_states(overlap_add_states, _added),
    check=_check_overlap_add,
    kernel=_overlap_add,
    bound=rounded(),
    sample=_sample_overlap_add,
)


@frozen
class SignalStackerDescriptor(Descriptor):
    """Inputs: a frame [C], the last frames, and 1 more than their number (0 before the first run).

    Outputs: the frame with its neighbours [(left + 1 + right) * C], whether there are enough, and the new states. The
    output is 0 as long as there are too few. The first frame stands for those to its left.
    """

    stacker_left_context: int
    stacker_right_context: int
    stacker_step: int
    """Frames from one output to the next."""

    @property
    def frames(self) -> int:
        """Frames of an output."""
        return self.stacker_left_context + 1 + self.stacker_right_context


def stacker_states(descriptor: SignalStackerDescriptor, operands: Operands) -> tuple[Kept, ...]:
    """Return the last frames, and 1 more than their number; UnsupportedError if the descriptor is not valid."""
    size = vector(operands).elements
    expect_range("stacker_left_context", descriptor.stacker_left_context, 0, _MOST_FRAMES)
    expect_range("stacker_right_context", descriptor.stacker_right_context, 0, _MOST_FRAMES)
    expect_range("stacker_step", descriptor.stacker_step, 1, descriptor.frames)
    shape = (max(descriptor.frames - 1, 1), size)
    return _kept("stored", shape), Kept(role="count", shape=(), dtype=DataType.INT32)


def _stacked(descriptor: SignalStackerDescriptor, operands: Operands) -> Shapes:
    return (descriptor.frames * operands.source.elements,), ()


def _stacker(descriptor: SignalStackerDescriptor, operands: Operands, arrays: Arrays) -> list[Array]:
    data, stored, counted = required_arrays(arrays, range(3))
    count = min(max(int(counted), 0), descriptor.frames)
    copies = 1 if count else 1 + descriptor.stacker_left_context
    present = np.concatenate([stored[: max(count - 1, 0)], np.repeat(data[None], copies, axis=0)])
    is_whole = len(present) >= descriptor.frames
    output = present if is_whole else np.zeros((descriptor.frames, data.size), np.int16)
    rest = present[descriptor.stacker_step :] if is_whole else present
    following = np.zeros_like(stored)
    following[: len(rest)] = rest
    whole = np.array(is_whole)
    return [output.reshape(operands.output.shape), whole, following, np.array(len(rest) + 1, np.int32)]


def _sample_stacker(sample: LayerSample) -> Descriptor:
    dice = sample.dice
    left, right = dice.randint(0, 3), dice.randint(0, 3)
    step = dice.randint(1, left + 1 + right)
    descriptor = SignalStackerDescriptor(stacker_left_context=left, stacker_right_context=right, stacker_step=step)
    sample.take((dice.randint(1, 9),))
    return take_states(sample, descriptor, stacker_states, (DataType.BOOL, None))


SIGNAL_STACKER = Operator(
    descriptor=SignalStackerDescriptor,
    type=LayerType.SIGNAL_STACKER,
    states=stacker_states,
    shapes=_with_states(stacker_states, _stacked),
    check=_FRAMED,
    kernel=_stacker,
    sample=_sample_stacker,
)
