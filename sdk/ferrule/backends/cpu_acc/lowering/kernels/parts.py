# SPDX-License-Identifier: Apache-2.0
"""Grouped and transposed convolutions, and those of few output channels, as parts that are ordinary convolutions.

A part computes some outputs of a layer: the channels of all groups, or the pixels of one phase. Kernels that take a
`struct ferrule_view` (`ferrule/kernels/window.h`) compute it with their usual loops. Only indices of weights are here,
so that the description holds for every type of data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from ferrule._frozen import frozen
from ferrule.backends.cpu_acc.lowering.kernel_call import KernelCall, Member, window_fields
from ferrule.backends.cpu_acc.lowering.kernels.choice import Candidate, Feature, Found, Row, weighted_row
from ferrule.backends.cpu_acc.lowering.kernels.convolution import Convolution, weights_of
from ferrule.backends.cpu_acc.lowering.kernels.int8_channels import Channels
from ferrule.graph import Array, DataType, LayerType, Rounding
from ferrule.memory.request import Overlap
from ferrule.operators.arithmetic.window import Padding, Window
from ferrule.operators.weighted.conv2d import groups_of
from ferrule.operators.weighted.products import WEIGHTED_RULES, folded_bias

_NONE = -1
"""The index of a weight that is zero."""
_PACKED = (2, 4)
"""Numbers of neighbouring pixels whose outputs may fill blocks of channels."""
_MOST_OUTPUTS = 16
"""Groups are not merged, nor pixels packed, to fill blocks of more outputs than these: most blocks are full anyway."""
_MOST_UNITED = 64
"""Phases are not united to windows with more outputs than these: those of zero weight take too long."""
_TABLE_BYTES = 140
"""Of a parameter table."""


@frozen(eq=False)
class Part:
    """A convolution that computes some outputs of a layer; its groups differ only in their weights and channels."""

    window: Window
    """The padding may be negative: then the first window begins inside the image. Padding behind is not stated."""
    height: int
    """Output pixels from top to bottom, as `width` from left to right."""
    width: int
    first: int
    """Elements of the output before the first pixel."""
    column: int
    """Elements from an output pixel to the next one of its row."""
    row: int
    """Elements from a row of output pixels to the next one."""
    group_output: int
    """Elements from the outputs of a group to those of the next one."""
    places: Array
    """[outputs]: of each output of a group, the elements between its group's first output of the pixel and itself."""
    owners: Array
    """[groups, outputs]: the layer's output channel, which has the bias and the scale."""
    taps: Array
    """[groups, outputs, height, width, channels]: indices into the layer's weights in their order; -1 for zero."""
    first_c: int = 0
    """The image's channel at which the first group begins; only kernels that ask for it get another one than 0."""

    @property
    def groups(self) -> int:
        """The groups of channels."""
        return len(self.taps)

    @property
    def channels(self) -> int:
        """The input channels of a group."""
        return int(self.taps.shape[-1])

    @property
    def outputs(self) -> int:
        """The outputs of a group at a pixel."""
        return len(self.places)

    @property
    def is_dense(self) -> bool:
        """Whether the outputs of a group are neighbours, in order."""
        return bool((self.places == np.arange(self.outputs)).all())

    def is_spread(self, layer: Convolution) -> bool:
        """Return whether the part leaves out pixels of the output, or does not go over them once and in order."""
        one_by_one = (
            self.width * self.column == self.row
            and self.height * self.row == layer.output.elements // (layer.output.shape[0])
        )
        return not one_by_one or layer.context.layer.type is LayerType.TRANSPOSE_CONV

    def together(self, layer: Convolution) -> int:
        """Return how many neighbouring pixels of the layer are one of the part, if it has all."""
        return self.column // layer.output.shape[3]

    def in_blocks(self, size: int) -> Part:
        """Return the part, the last output of each group repeated up to whole blocks of so many."""
        chosen = np.minimum(np.arange(-(-self.outputs // size) * size), self.outputs - 1)
        return replace(self, places=self.places[chosen], owners=self.owners[:, chosen], taps=self.taps[:, chosen])

    def some_groups(self, first: int, end: int) -> Part:
        """Return the part with the groups from `first` up to `end` only."""
        return replace(
            self,
            first=self.first + first * self.group_output,
            owners=self.owners[first:end],
            taps=self.taps[first:end],
            first_c=self.first_c + first * self.channels,
        )

    def merged(self, times: int) -> Part:
        """Return the part with so many neighbouring groups as one, most weights of which are zero."""
        groups, outputs, *extents, channels = self.taps.shape
        taps = np.full((groups // times, times * outputs, *extents, times * channels), _NONE)
        for k in range(times):
            own = slice(k * outputs, (k + 1) * outputs)
            taps[:, own, :, :, k * channels : (k + 1) * channels] = self.taps[k::times]
        return replace(
            self,
            group_output=times * self.group_output,
            places=np.concatenate([self.places + k * self.group_output for k in range(times)]),
            owners=self.owners.reshape(groups // times, -1),
            taps=taps,
        )

    def packed(self, times: int) -> tuple[Part, ...]:
        """Return parts whose outputs are those of so many neighbouring pixels, and of the rest of a row or column.

        Windows of one column have the rows of neighbours below in common, others the columns of neighbours beside. The
        axis of these is not dilated. Pixels of a rest may be computed twice instead.
        """
        extent = self.height if self._is_column else self.width
        count, rest = -(-extent // times), extent % times
        if extent <= times:
            return (self._packed(extent, 0, 1),)
        if not rest:
            return (self._packed(times, 0, count),)
        if not (extent - times) % (count - 1):
            return (self._packed(times, 0, count, apart=(extent - times) // (count - 1)),)
        return self._packed(times, 0, count - 1), self._packed(rest, extent - rest, 1)

    @property
    def _is_column(self) -> bool:
        return self.window.width == 1 < self.window.height

    def _packed(self, times: int, start: int, count: int, apart: int = 0) -> Part:
        """Return `count` times so many neighbours, from an output pixel on, each `apart` from the one before."""
        window, (groups, outputs, height, width, channels) = self.window, self.taps.shape
        down, column = self._is_column, self.row if self._is_column else self.column
        stride, apart, padding = window.stride_h if down else window.stride_w, apart or times, window.padding
        more = (times - 1) * stride
        extents = (height + more, width) if down else (height, width + more)
        taps = np.full((groups, times * outputs, *extents, channels), _NONE)
        for k in range(times):
            at, own = k * stride, slice(k * outputs, (k + 1) * outputs)
            if down:
                taps[:, own, at : at + height] = self.taps
            else:
                taps[:, own, :, at : at + width] = self.taps
        part = replace(
            self,
            first=self.first + start * column,
            places=np.concatenate([self.places + k * column for k in range(times)]),
            owners=np.tile(self.owners, times),
            taps=taps,
        )
        if down:
            padding = replace(padding, top=padding.top - start * stride)
            wide = replace(window, height=extents[0], stride_h=apart * stride, padding=padding)
            return replace(part, window=wide, height=count, row=apart * column)
        padding = replace(padding, left=padding.left - start * stride)
        wide = replace(window, width=extents[1], stride_w=apart * stride, padding=padding)
        return replace(part, window=wide, width=count, column=apart * column)


def whole_part(layer: Convolution) -> Part:
    """Return a CONV_2D, with or without groups, as a part."""
    outputs, *extents = layer.context.input(1).shape
    groups = groups_of(layer.image, layer.context.input(1))
    _, height, width, channels = layer.output.shape
    return Part(
        window=layer.window,
        height=height,
        width=width,
        first=0,
        column=channels,
        row=width * channels,
        group_output=outputs // groups,
        places=np.arange(outputs // groups),
        owners=np.arange(outputs).reshape(groups, -1),
        taps=np.arange(outputs * int(np.prod(extents))).reshape(groups, outputs // groups, *extents),
    )


def phases(layer: Convolution) -> tuple[Part, ...]:
    """Return a TRANSPOSE_CONV as parts of one group: the output pixels whose windows have the same taps.

    These are stride_h * stride_w phases; one without taps has one tap of weight zero.
    """
    window, (_, height, width, channels) = layer.window, layer.output.shape
    shape = layer.context.input(1).shape
    indices = np.pad(
        np.arange(int(np.prod(shape))).reshape(shape), ((0, 0), (0, 1), (0, 1), (0, 0)), constant_values=_NONE
    )
    down = _phases(window.height, window.stride_h, window.padding.top, height)
    across = _phases(window.width, window.stride_w, window.padding.left, width)
    return tuple(
        Part(
            window=Window(
                height=len(rows.taps),
                width=len(columns.taps),
                stride_h=1,
                stride_w=1,
                padding=Padding(top=rows.before, left=columns.before),
            ),
            height=rows.count,
            width=columns.count,
            first=(rows.first * width + columns.first) * channels,
            column=window.stride_w * channels,
            row=window.stride_h * width * channels,
            group_output=0,
            places=np.arange(channels),
            owners=np.arange(channels)[None],
            taps=indices[:, rows.taps][:, :, columns.taps][None],
        )
        for rows, columns in product(down, across)
    )


@frozen
class _Phase:
    """The pixels of an axis whose windows have the same taps."""

    first: int
    count: int
    before: int
    """The padding before the first window."""
    taps: Sequence[int]
    """In the order of the image; -1, the last index, for none."""


def _phases(kernel: int, stride: int, pad: int, extent: int) -> Iterator[_Phase]:
    """Yield the phases of an axis that have pixels.

    Output o gets tap k of pixel i where o + pad = i * stride + k. So the taps of o are (o + pad) % stride and every
    stride-th one after it, each of the pixel before that of the last one.
    """
    for offset in range(min(stride, extent)):
        pixel, first_tap = divmod(offset + pad, stride)
        taps = tuple(reversed(range(first_tap, kernel, stride))) or (_NONE,)
        yield _Phase(first=offset, count=-(-(extent - offset) // stride), before=len(taps) - 1 - pixel, taps=taps)


def joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return phases with those as one that differ only in their outputs, such as all phases of a window of a stride."""
    by_window: dict[object, list[Part]] = {}
    for part in parts:
        by_window.setdefault((part.window, part.height, part.width), []).append(part)
    return tuple(
        replace(
            same[0],
            places=np.concatenate([part.places + part.first - same[0].first for part in same]),
            owners=np.concatenate([part.owners for part in same], axis=1),
            taps=np.concatenate([part.taps for part in same], axis=1),
        )
        for same in by_window.values()
    )


def united(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return phases as one part whose window has the taps of all, most of which are zero; none if sizes differ."""
    if len({(part.height, part.width) for part in parts}) > 1:
        return ()
    windows = [part.window for part in parts]
    top, left = max(each.padding.top for each in windows), max(each.padding.left for each in windows)
    height = max(top - each.padding.top + each.height for each in windows)
    width = max(left - each.padding.left + each.width for each in windows)
    wide = replace(windows[0], height=height, width=width, padding=Padding(top=top, left=left))
    taps = []
    for part, window in zip(parts, windows, strict=True):
        found = np.full((*part.taps.shape[:2], height, width, part.channels), _NONE)
        above, before = top - window.padding.top, left - window.padding.left
        found[:, :, above : above + window.height, before : before + window.width] = part.taps
        taps.append(found)
    return joined([replace(part, window=wide, taps=each) for part, each in zip(parts, taps, strict=True)])


def ways(layer: Convolution) -> Iterator[tuple[bool, tuple[Part, ...]]]:
    """Yield the ways to divide a layer into parts, and whether they have more weights than it, which are zero.

    None of them is a CONV_2D of one group as it is.
    """
    if layer.context.layer.type is LayerType.TRANSPOSE_CONV:
        single = phases(layer)
        together = joined(single)
        yield False, single
        if len(together) < len(single):
            yield False, together
        if len(together) > 1 and len(single) * single[0].outputs <= _MOST_UNITED:
            whole = united(single)
            if whole:
                yield True, whole
        if _is_packable(single[0]):
            for times in _PACKED:
                yield True, tuple(each for part in single for each in part.packed(times))
        return
    part = whole_part(layer)
    if _is_packable(part):
        yield from ((True, part.packed(times)) for times in _PACKED)
    if part.groups == 1:
        return
    yield False, (part,)
    for times in range(2, part.groups + 1):
        if part.groups % times == 0 and times * part.outputs <= _MOST_OUTPUTS:
            yield True, (part.merged(times),)


def _is_packable(part: Part) -> bool:
    """Return whether neighbouring pixels fill blocks that the outputs of one leave empty, and not only the last one."""
    window = part.window
    dilation = window.dilation_h if window.width == 1 else window.dilation_w
    return dilation == 1 and part.outputs % 4 != 0 and part.outputs < _MOST_OUTPUTS


def part_channels(layer: Convolution, part: Part) -> Channels:
    """Return the outputs of all groups of a part of an int8 layer as channels, [groups * outputs], all as if alive."""
    weights = np.append(weights_of(layer.context).reshape(-1), np.int8(0))
    matrix = weights[part.taps].reshape(part.owners.size, -1)
    owners = part.owners.reshape(-1)
    bias, factors, channels = layer.bias(np.int64), layer.factors(), layer.output.shape[3]
    return Channels(
        layer=layer,
        places=np.tile(part.places, part.groups),
        matrix=matrix,
        bias=folded_bias(matrix.sum(axis=1, dtype=np.int64), bias[owners], layer.image.zero_point),
        factors=[factors[owner] for owner in owners],
        dead=np.zeros(channels, np.bool_),
        fixed=np.zeros(channels, np.int8),
    )


def part_fields(layer: Convolution, part: Part, *, more: bool) -> Mapping[str, Mapping[str, int]]:
    """Return the members for the window and the view of a part; `more` if another part follows."""
    shape = {"input_c": part.channels, "output_h": part.height, "output_w": part.width}
    return {
        "window": {**window_fields(part.window, layer.image, layer.output), **shape},
        "view": {
            "groups": part.groups,
            "pixel_c": layer.image.shape[3],
            "group_output": part.group_output,
            "first": part.first,
            "column": part.column,
            "row": part.row,
            "image": layer.output.elements // layer.output.shape[0],
            "more": int(more),
        },
    }


# ---- Kernels


@frozen(eq=False)
class PlannedPart:
    """What a kernel needs for a part."""

    instructions: int
    weight_bytes: int
    scratch_bytes: int
    overlaps: Callable[[], tuple[Overlap, ...]]
    """How far the output may overlap the image if the layer has no other part."""
    fields: Callable[[bool], Mapping[str, Member]]
    """Returns the members of the kernel's table, given whether that of another part follows."""


Planned = Callable[[Convolution, Part], Sequence[PlannedPart] | str]
"""Returns what a kernel needs for a part, with less and more scratch, or why it cannot compute it."""


def part_rows(
    kernel: str,
    header: str,
    planned: Planned,
    *needs: Feature,
    sources: tuple[str, ...],
    code: str = "",
    rules: frozenset[Rounding] = WEIGHTED_RULES,
    ruled: str = "",
    function: str = "",
    table: str = "",
    dtype: DataType = DataType.INT8,
    divided: Callable[[Convolution, Part], Sequence[Part]] = lambda layer, part: (part,),
) -> tuple[Row, ...]:
    """Return the rows of a kernel for parts of a layer: with the layer's weights alone, and with more weights of zero.

    `divided` returns a part as those that the kernel computes. `ruled` is the part of the kernel's name before that of
    the layer's rule, if it has kernels for each rule; `function` is the name of the C function if it is another one
    than the kernel's. The pixels of windows of one pixel are one row, too: kernels that begin anew in each row are
    faster then, but those that copy rows need more scratch.
    """

    def found(layer: Convolution, *, grown: bool) -> Found:
        whole = layer.in_a_row
        each = [
            _of_parts(form, tuple(piece for part in parts for piece in divided(form, part)))
            for form in ([whole] if whole is layer else [whole, layer])
            for more, parts in ways(form)
            if more is grown
        ]
        candidates = [candidate for some in each if not isinstance(some, str) for candidate in some]
        return candidates or next((some for some in each if isinstance(some, str)), "no more weights would help")

    def _of_parts(layer: Convolution, parts: tuple[Part, ...]) -> list[Candidate] | str:
        plans: list[Sequence[PlannedPart]] = []
        for part in parts:
            plan = planned(layer, part)
            if isinstance(plan, str):
                return plan
            plans.append(plan)
        most = max(len(plan) for plan in plans)
        return [_candidate(layer, parts, [plan[min(k, len(plan) - 1)] for plan in plans]) for k in range(most)]

    def _candidate(layer: Convolution, parts: tuple[Part, ...], plans: Sequence[PlannedPart]) -> Candidate:
        def call() -> KernelCall:
            fields, *more = (plan.fields(part is not parts[-1]) for part, plan in zip(parts, plans, strict=True))
            return KernelCall(
                ruled or function or kernel,
                header,
                fields,
                more=more,
                title=kernel if function else "",
                table=table or f"{kernel}_params",
                sources=sources,
                ruled=bool(ruled),
            )

        return Candidate(
            kernel=kernel,
            code=code,
            instructions=sum(plan.instructions for plan in plans),
            weight_bytes=sum(plan.weight_bytes for plan in plans) + _TABLE_BYTES * (len(parts) - 1),
            scratch_bytes=max(plan.scratch_bytes for plan in plans),
            overlaps=plans[0].overlaps if len(parts) == 1 and not parts[0].is_spread(layer) else tuple,
            call=call,
        )

    return tuple(
        weighted_row(f"{kernel} {title}", partial(found, grown=grown), *needs, rules=rules, dtype=dtype)
        for title, grown in (("in parts", False), ("in parts with weights of zero", True))
    )
