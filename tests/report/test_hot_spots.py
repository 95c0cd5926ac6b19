# SPDX-License-Identifier: Apache-2.0
"""Where the time and the memory of a run go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from page_reader import Page
from saved_documents import run_document

from ferrule.report.hot_spots import hot_spots, used_bytes
from ferrule.report.html import html_page
from ferrule.report.html.figures import hot_layers_figure
from ferrule.report.picture import BufferPart, HotLayer, HotLayers, RegionPlanPart
from ferrule.report.run_document import ReportDocument
from ferrule.report.sections import Picture, Text


def buffer(offset: int, size_bytes: int, first: int, last: int) -> BufferPart:
    return BufferPart(name=str(offset), kind="activation", offset=offset, size_bytes=size_bytes, first=first, last=last)


def region(*buffers: BufferPart, steps: int) -> RegionPlanPart:
    names = tuple(f"l{index}" for index in range(steps))
    return RegionPlanPart(name="r", peak_bytes=99, bound_bytes=1, certificate="", steps=names, buffers=buffers)


def parts(report: ReportDocument) -> tuple[HotLayers, tuple[str, ...]]:
    picture, text = hot_spots(report)
    assert isinstance(picture, Picture)
    assert isinstance(picture.data, HotLayers)
    assert isinstance(text, Text)
    return picture.data, tuple(text.items)


@pytest.mark.parametrize(
    ("buffers", "expected"),
    [
        ((), [0, 0, 0]),
        ((buffer(0, 10, 0, 0), buffer(10, 5, 0, 1)), [15, 5, 0]),
        ((buffer(0, 10, 0, 1), buffer(5, 10, 1, 2)), [10, 15, 10]),
        ((buffer(0, 10, 0, 0), buffer(2, 3, 0, 0), buffer(50, 1, 0, 0)), [11, 0, 0]),
    ],
)
def test_bytes_that_buffers_share_count_once(buffers: tuple[BufferPart, ...], expected: list[int]) -> None:
    assert used_bytes(region(*buffers, steps=3)) == expected


def test_a_run_says_what_would_save_most() -> None:
    hot, items = parts(run_document())
    assert [(each.share, each.used_bytes, each.sources) for each in hot.layers] == [
        (0.75, 16_256, ()),
        (0.25, 8_256, (0,)),
    ]
    assert items == (
        "time: 75.0% of the instructions in layer 0 'conv_2d_0' (CONV_2D on Npu/npu0)",
        "time: 25.0% of the instructions in layer 1 'fully_connected_1' (FULLY_CONNECTED on CpuAcc)",
        "time: 25.0% of the instructions in 1 layer between integers in float32, from 'fully_connected_1'; "
        "nothing but another operator in the model",
        "memory sram: most is in use at layer 'conv_2d_0', 16,256 B: ' a' 8,256 B, 'input' 8,000 B; "
        "all other steps take at most 8,256 B",
        "flash: 51.0% of the weights in layer 0 'conv_2d_0', 1,000 B",
    )


def test_a_buffer_at_the_peak_is_named_by_the_layer_that_writes_it() -> None:
    report = run_document()
    layers = (replace(report.layers[0], outputs=(" a",)), report.layers[1])
    assert "the output of 'conv_2d_0' 8,256 B, 'input' 8,000 B" in parts(replace(report, layers=layers))[1][3]


def test_the_advice_of_a_layer_follows_its_time() -> None:
    report = run_document()
    layers = tuple(replace(each, advice="a better kernel would save 50%") for each in report.layers)
    assert parts(replace(report, layers=layers))[1][0].endswith("; a better kernel would save 50%")


def test_what_is_not_known_is_not_drawn() -> None:
    report = run_document()
    silent = replace(report, count=replace(report.count, per_inference=0), plan=())
    hot, items = parts(silent)
    assert {(each.share, each.used_bytes) for each in hot.layers} == {(None, None)}
    assert [item for item in items if item.startswith(("time", "memory"))] == []
    figure = hot_layers_figure(hot)
    assert len(figure.boxes) == 2
    assert "neither time nor memory is known" in figure.caption
    assert "Where time and memory go" in Page(html_page(silent)).text
    assert "Where time and memory go" not in Page(html_page(replace(report, layers=()))).text


def layers_of(*sources: tuple[int, ...]) -> list[HotLayer]:
    return [
        HotLayer(
            name=str(index),
            type="ADD",
            runner="CpuAcc",
            colour=0,
            share=1 / len(sources),
            used_bytes=5,
            sources=each,
        )
        for index, each in enumerate(sources)
    ]


def test_branches_have_lanes_beside_the_boxes() -> None:
    figure = hot_layers_figure(HotLayers(layers_of((), (0,), (1, 0), (2, 0)), "cycles", "r"))
    beside = {x1 for _, x1, x2, y1, y2 in figure.lines if x1 == x2 and y2 - y1 > 30}
    assert len(beside) == 2, "the edges from 0 to 2 and from 0 to 3 overlap"
    assert all(0 < x < 0.08 for x in beside)
    short = [line for line in figure.lines if line[1] > 0.08]
    assert len(short) == 3
    after = hot_layers_figure(HotLayers(layers_of((), (0,), (0,), (2,), (2,)), "cycles", "r"))
    assert len({x1 for _, x1, x2, y1, y2 in after.lines if x1 == x2 and y2 - y1 > 30}) == 1, "a lane is used again"


@pytest.mark.parametrize("count", [40, 41, 1_000])
def test_very_many_layers_are_columns(count: int) -> None:
    figure = hot_layers_figure(HotLayers(layers_of(*[()] * count), "cycles", "r"))
    assert all(box.x >= 0 and box.x + box.width <= 1.000001 for box in figure.boxes)
    assert all(box.y >= 0 and box.y + box.height <= figure.height for box in figure.boxes)
    assert len(figure.boxes) == (3 if count <= 40 else 2) * count
    assert figure.height == (1_200 if count <= 40 else 194)
    assert figure.boxes[-1].tip == f"{count - 1}: ADD on CpuAcc, {1 / count:.1%} of the cycles, 5 B of r in use"
