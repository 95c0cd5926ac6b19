# SPDX-License-Identifier: Apache-2.0
"""Documents as web pages."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_reader import Page
from saved_documents import (
    documents,
    evaluation_document,
    inspection_document,
    run_document,
    search_document,
    sweep_document,
)

from ferrule.errors import FerruleError
from ferrule.rendering import shown
from ferrule.report.base import Document
from ferrule.report.document import LayerRefusalsPart, Verdict
from ferrule.report.energy import EnergyPart
from ferrule.report.evaluation_document import ConfusionPart
from ferrule.report.html import html_fragment, html_page
from ferrule.report.html.charts import apart
from ferrule.report.html.figures import HEIGHT, Box, memory_figure, timeline_figure
from ferrule.report.picture import BufferPart, RegionPlanPart, SpanPart, Timeline
from ferrule.report.run_document import ReportDocument
from ferrule.report.sections import Part, Table, names, numbers
from ferrule.report.sweep_document import SweepDocument
from ferrule.report.timeline import timeline

KINDS = tuple(documents())
PLAIN = documents("a plain name")
HOSTILE = {
    "script": "</script><script>alert(1)</script>",
    "closing": "</title></style></svg></bdi></pre>--><b>",
    "attribute": "\" onmouseover=alert(1) x='",
    "image": "<img src=x onerror=alert(1)>",
    "entity": "&lt;b&gt; &amp; &#60;",
    "template": "{{ 7 * 7 }}{% raw %}",
    "control": "a\x00b\x07\x1b[31mc\x7f\x85",
    "right to left": "user\u202egnp.exe\u2066\u200f",
    "surrogate": "half \ud800 of one",
    "url": "javascript:alert(1)//http://example.org/",
    "long": "x<&\"'" * 2_000,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_names_change_no_structure(kind: str, name: str) -> None:
    hostile = HOSTILE[name]
    page = html_page(documents(hostile)[kind])
    assert all(c.isprintable() or c == "\n" for c in page)
    read, plain = Page(page), Page(html_page(PLAIN[kind]))
    assert read.structure == plain.structure
    where = " ".join((read.text, *read.values))
    assert " ".join(shown(hostile)[:30].split()) in where
    assert len(page) < 40 * len(html_page(PLAIN[kind]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_loads_nothing_and_a_fragment_is_no_page(kind: str) -> None:
    page, fragment = html_page(PLAIN[kind]), html_fragment(PLAIN[kind])
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert f"of {PLAIN[kind].sections().title} – Ferrule</title>" in page
    assert [word for word in ("http:", "https:", "url(", "@import") if word in page] == []
    read, part = Page(page), Page(fragment)
    assert {"main", "title"} <= {tag for tag, _ in read.structure}
    assert any(
        value.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:;") for value in read.values
    )
    assert not {"html", "head", "body", "main", "title", "h1"} & {tag for tag, _ in part.structure} - {"title"}
    rules = fragment[fragment.index("<style>") + 7 : fragment.index("</style>")]
    selectors = [line.strip() for line in rules.splitlines() if line.strip().endswith("{") or "{ " in line]
    assert all(each.startswith((".ferrule", "@media", "--")) for each in selectors), "the style is not scoped"


@pytest.mark.parametrize("kind", KINDS)
def test_headings_have_no_gaps(kind: str) -> None:
    for document in (PLAIN[kind], [PLAIN[kind], PLAIN[kind]]):
        levels = Page(html_page(document)).headings
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(below <= above + 1 for above, below in pairwise(levels))


def test_a_run_shows_its_figures_and_its_verdict_first() -> None:
    text = Page(html_page(run_document(verdict=Verdict.DIFFERENT))).text
    for figure in ("400", "42,000 B", "34,040 B", "640 B", "16,256 B", "2,000,000", "75.0%", "4,096 of 65,536"):
        assert figure in text, figure
    assert text.index("different 1 of 2 samples differs from") < text.index("Layers")
    assert "First difference: layer 'conv_2d_0' (CONV_2D) on Npu, tensor 'conv/Relu;bias'" in text
    exact = run_document()
    assert "exact All outputs of 2 samples equal the numpy reference bit for bit." in Page(html_page(exact)).text
    bare = replace(exact, plan=(), timeline=(), refusals=(), environment=None, devices=(), device_trace=None, layers=())
    assert not {"Layers", "Memory over time", "Devices"} & {*Page(html_page(bare)).text.split()}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_stands_above_a_title(kind: str) -> None:
    """Above each section is a rule."""
    for text, title in ((html_page(PLAIN[kind]), "h1"), (html_fragment(PLAIN[kind]), "h2")):
        tags = [tag for tag, _ in Page(text).structure]
        assert tags.index(title) < [*tags, "section"].index("section")


def test_only_a_short_figure_is_large() -> None:
    page = html_page(run_document())
    assert '<span class="big">42,000 B</span>' in page
    assert '<span class="note">1 layer, 100 instructions (25.0%)</span>' in page


@pytest.mark.parametrize("kind", ["run", "inspection", "evaluation"])
def test_a_page_has_the_estimates_and_marks_them(kind: str) -> None:
    text = Page(html_page(documents()[kind])).text
    begin = text.index("Estimates of compilers What compilers expect of pre-compiled layers. None of these numbers is")
    part = text[begin : begin + 500]
    for words in (
        "Estimated by Acme 1.0 for [large]: 2,000 cycles, 0.020 ms at 100 MHz",
        "slow [memory]",
        "in place of estimated cycles share first 1,500 75.0% second 500 25.0%",
        "memory read, B written, B estimated cycles SRAM 4,097 12 70",
    ):
        assert words in part, words


def test_a_page_without_estimates_has_nothing_of_them() -> None:
    whole = run_document()
    assert "with estimates of the time that npu0 would take" in Page(html_page(whole)).text
    bare = replace(whole, layers=tuple(replace(layer, estimate=None) for layer in whole.layers), devices=())
    assert "stimate" not in Page(html_page(bare)).text


def test_an_estimate_of_very_many_layers_is_folded() -> None:
    document = run_document()
    layer = document.layers[0]
    assert layer.estimate is not None
    large = replace(
        layer.estimate,
        layers={f"layer {index}": index for index in range(1_000)},
        warnings=tuple(f"warning {index}" for index in range(100)),
    )
    one = Page(html_page(replace(document, layers=(replace(layer, estimate=large),)))).text
    listed = [f"layer {index}" for index in (*range(999, 979, -1), *range(400))]
    places = [
        one.index(f" {name} ", one.index("The 20 with the most estimated cycles, of 1,000")) for name in listed[:20]
    ]
    assert places == sorted(places)
    assert "The first 400 of 1,000" in one
    assert " layer 399 " in one
    assert " layer 400 " not in one
    assert "and 43 more; the JSON document has all." in one
    layers = tuple(replace(layer, name=f"program {index}") for index in range(61))
    many = Page(html_page(replace(document, layers=layers))).text
    assert "and 2 more; the JSON document has all." in many


def test_a_run_without_a_counter_shows_no_counts() -> None:
    document = run_document()
    silent = replace(document, count=replace(document.count, source="none"), timeline=())
    assert "instructions share" in Page(html_page(document)).text
    text = Page(html_page(silent)).text
    assert "instructions share" not in text
    assert "not counted: the firmware has no counter" in text


def test_several_models_are_one_page() -> None:
    read = Page(html_page([run_document("first"), run_document("second")]))
    assert "Run of 2 models" in read.text
    assert {"#part-1", "#part-2"} <= set(read.values)
    with pytest.raises(ValueError, match="no document"):
        html_page([])


SHOWN = {
    "run": (
        "Flash: 42,000 B code",
        "RAM: 34,040 B workspace",
        "Memory over time",
        "# layer type, kernel backend MACs",
        "CONV_2D conv2d_s8",
    ),
    "failure": ("0x0000_1000", "main+4", "r0 00000001", "hard fault", "explains faults"),
    "refusal": ("2 problems", "operator 3 RNN RNN unroll it"),
    "evaluation": (
        "0.8500 to 0.9400 (0.95)",
        "there is one label only",
        "Proved on mps2-an386 by unicorn",
        "100 samples",
        "98.00%",
    ),
    "evaluation without a board": ("not proved on a board",),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_a_page_shows(kind: str) -> None:
    text = Page(html_page(documents()[kind])).text
    assert not [words for words in SHOWN[kind] if words not in text]


def test_a_matrix_of_very_many_labels_is_a_list_of_mistakes() -> None:
    counts = tuple(tuple(7 if column == row + 1 else 0 for column in range(200)) for row in range(200))
    confusion = ConfusionPart(labels=tuple(f"label {index}" for index in range(200)), counts=counts)
    text = Page(html_page(replace(evaluation_document(), confusion=confusion))).text
    assert "200 labels are too many for a matrix" in text
    assert "label 0 label 1 7 100.0%" in text


def test_a_sweep_shows_failures_first() -> None:
    text = Page(html_page(sweep_document())).text
    assert "not all runs succeeded 3 of 4 runs, 1 failed, 1 differ from the reference." in text
    assert text.index("the firmware hung") < text.index("By model and board")


def large_run() -> ReportDocument:
    document = run_document()
    layers = tuple(
        replace(document.layers[index % 2], index=index, name=f"{'a/long/name;of;keras' * 3}/{index}", beside=())
        for index in range(1_000)
    )
    buffers = tuple(
        replace(document.plan[0].buffers[index % 2], name=f"{'a/long/name;of;keras' * 3}/{index}", first=index // 2)
        for index in range(2_000)
    )
    steps = tuple(layer.name for layer in layers)
    plan = replace(document.plan[0], steps=steps, buffers=tuple(replace(each, last=each.first) for each in buffers))
    refusals = tuple(LayerRefusalsPart(layer=name, reasons={"Npu": f"no {name}"}) for name in steps)
    spans = timeline(layers, ["npu0"], exact=True)
    return replace(document, layers=layers, plan=(plan,), timeline=spans, refusals=refusals)


def large_sweep() -> SweepDocument:
    document = sweep_document()
    return replace(document, rows=document.rows * 334, planned=1_002)


@pytest.mark.parametrize("document", [large_run(), large_sweep()], ids=["1,000 layers", "1,002 runs"])
def test_large_documents_stay_small(document: Document) -> None:
    page = html_page(document)
    assert len(page.encode()) < 2_000_000
    assert "1,00" in Page(page).text


def region_of(peak_bytes: int, steps: int, buffers: tuple[BufferPart, ...]) -> RegionPlanPart:
    return RegionPlanPart(
        name="r",
        peak_bytes=peak_bytes,
        bound_bytes=peak_bytes,
        certificate="",
        steps=tuple("s" * steps),
        buffers=buffers,
    )


@given(st.data())
def test_buffers_lie_where_the_plan_has_them(data: st.DataObject) -> None:
    steps = data.draw(st.integers(1, 20))
    buffers = tuple(
        BufferPart(name=str(index), kind="activation", offset=offset, size_bytes=size, first=first, last=last)
        for index, (offset, size, first, last) in enumerate(
            data.draw(
                st.lists(
                    st.tuples(st.integers(0, 90), st.integers(1, 10), st.integers(0, steps - 1), st.just(steps - 1)),
                    min_size=1,
                    max_size=8,
                )
            )
        )
    )
    peak = max(each.offset + each.size_bytes for each in buffers)
    picture = memory_figure(region_of(peak, steps, buffers))
    largest = sorted(buffers, key=lambda each: -each.size_bytes)
    for box, buffer in zip(picture.boxes, largest, strict=True):
        assert box.x * steps == pytest.approx(buffer.first)
        assert (box.x + box.width) * steps == pytest.approx(buffer.last + 1)
        assert (HEIGHT - box.y) * peak / HEIGHT == pytest.approx(buffer.offset + buffer.size_bytes)
        assert box.height * peak / HEIGHT == pytest.approx(buffer.size_bytes)
    assert picture.lines == [("bound", 0, 1, 1, 1)], "at the top, within the picture"


def test_very_many_buffers_are_the_largest() -> None:
    buffers = tuple(
        BufferPart(name=str(size), kind="scratch", offset=0, size_bytes=size, first=0, last=0)
        for size in range(1, 2_001)
    )
    picture = memory_figure(region_of(2_000, 1, buffers))
    assert "800 smaller buffers are not drawn." in picture.caption
    assert [box.tip.split(" B at")[0] for box in picture.boxes[:2]] == ["2000: scratch, 2,000", "1999: scratch, 1,999"]


@pytest.mark.parametrize(
    ("offset", "first", "last", "inside"),
    [(20, 0, 2, True), (20, 4, 6, True), (20, 0, 1, False), (20, 5, 6, False), (10, 2, 4, False), (40, 2, 4, False)],
)
def test_what_lies_inside_of_scratch_is_drawn_over_it(offset: int, first: int, last: int, inside: bool) -> None:
    buffers = (
        BufferPart(name="scratch", kind="scratch", offset=30, size_bytes=10, first=2, last=4),
        BufferPart(name="other", kind="activation", offset=offset, size_bytes=20, first=first, last=last),
    )
    found = [box.tip.split(":")[0] for box in memory_figure(region_of(60, 7, buffers)).boxes]
    assert found == (["scratch", "other"] if inside else ["other", "scratch"])


def labels(box: Box) -> dict[str, tuple[str, bool]]:
    return {each.window.removeprefix("fit "): (each.text, each.inside) for each in box.labels}


def box_of(width: float, label: str, *, beside: bool = False) -> Box:
    return Box(0.0, width, 0.0, 24.0, "f0", "", label, beside)


def test_a_number_is_shown_as_a_whole_or_not_at_all() -> None:
    assert labels(box_of(0.5, "8,000")) == {"": ("8,000", True)}
    assert labels(box_of(0.1, "8,000")) == {"middle": ("8,000", True), "wide": ("8,000", True)}
    assert labels(box_of(0.01, "8,000")) == {}
    assert labels(box_of(0.01, "8,000", beside=True)) == {"": ("8,000", False)}
    assert labels(box_of(0.1, "8,000", beside=True))["narrow"] == ("8,000", False)
    assert replace(box_of(1.0, "8,000"), height=15.0).labels == []


def test_a_name_that_does_not_fit_ends_in_an_ellipsis() -> None:
    found = labels(box_of(0.2, "depthwise_conv_2d_1"))
    assert found == {
        "narrow": ("depthwis…", True),
        "middle": ("depthwise_conv_…", True),
        "wide": ("depthwise_conv_2d_1", True),
    }
    assert labels(box_of(0.01, "depthwise_conv_2d_1")) == {}
    for name in ("a", "depthwise" * 20):
        assert len(box_of(0.2, name).labels) == 3, "the name changes no structure"


def test_no_label_lies_below_another_buffer() -> None:
    buffers = (
        BufferPart(name="below", kind="activation", offset=0, size_bytes=50, first=0, last=4),
        BufferPart(name="above", kind="activation", offset=30, size_bytes=40, first=0, last=2),
        BufferPart(name="apart", kind="activation", offset=0, size_bytes=30, first=5, last=6),
    )
    assert [box.label for box in memory_figure(region_of(70, 7, buffers)).boxes] == ["", "40", "30"]


def test_ticks_stand_at_their_places_and_do_not_run_into_one_another() -> None:
    assert apart(["0", "5", "10", "15"]) == ["0", "5", "10", "15"]
    assert apart(["0", "500,000", "1,000,000", "1,500,000", "2,000,000"]) == ["0", "", "1,000,000", "", "2,000,000"]
    assert apart(["10,000,000", "20,000,000", "30,000,000", "40,000,000"]) == ["10,000,000", "", "", "40,000,000"]
    page = html_page(search_document())
    assert '<span style="left:0%">0</span>' in page


def test_a_figure_of_a_run_by_cycles_has_its_lines() -> None:
    run = run_document()
    timed = replace(run.duration, unit="cycles", elapsed=1_000, work=600, waits=(), milliseconds=0.01, clock_hz=10**8)
    energy = EnergyPart(low_mj=0.1, high_mj=0.2, parts={"core at work": (0.1, 0.1), "core asleep": (0.0, 0.1)})
    page = html_page(replace(run, duration=replace(timed, energy=energy)))
    assert "core at work 0.1 mJ, core asleep 0 to 0.1 mJ" in Page(page).text


def test_a_cell_without_text_is_no_heading() -> None:
    class Rows:
        def sections(self) -> Part:
            return Part("rows", (Table("rows", (*names("layer"), *numbers("count")), [("a", 1), ("", 2)]),))

    read = Page(html_page(Rows()))
    assert [tag for tag, _ in read.structure if tag == "th"] == ["th"] * 3


def test_the_run_that_proves_an_evaluation_is_set_apart() -> None:
    page = html_page(evaluation_document())
    begin = page.index('<p class="kind">Run</p>')
    assert page.rindex("<section>", 0, begin) > page.rindex("</section>", 0, begin)


def test_narrow_spans_are_drawn_as_one() -> None:
    spans = [SpanPart(track="core", layer=str(index), start=index, end=index + 1) for index in range(10_000)]
    boxes = timeline_figure(Timeline(spans, {}, "instructions")).boxes
    assert len(boxes) < 1_000
    assert [box.x for box in boxes[1:]] == pytest.approx([box.x + box.width for box in boxes[:-1]])
    assert sum(box.width for box in boxes) == pytest.approx(1)


def damaged(value: object, random: Random) -> object:
    """Return a decoded JSON value in which some lists, numbers and texts are others of their types."""
    match value:
        case dict():
            return {key: damaged(each, random) for key, each in value.items()}
        case list() if random.random() < 0.1:
            return random.choice([[], value * 2, value[1:], value[::-1]])
        case list():
            return [damaged(each, random) for each in value]
        case bool() | None:
            return value
        case int() if random.random() < 0.05:
            return random.choice([0, -1, 1 << 40])
        case float() if random.random() < 0.05:
            return random.choice([0.0, -1.5, 1e300])
        case str() if random.random() < 0.03:
            return random.choice(["", "x"])
        case _:
            return value


@pytest.mark.parametrize("kind", KINDS)
def test_documents_that_contradict_themselves_become_pages_or_one_error(kind: str) -> None:
    """As `ferrule report` reads them from files that others have written."""
    shown_pages = 0
    for seed in range(8):
        plain = msgspec.json.decode(msgspec.json.encode(PLAIN[kind]))
        try:
            document = msgspec.convert({**damaged(plain, Random(seed)), "kind": plain["kind"]}, type(PLAIN[kind]))
            Page(html_page(document))
        except (FerruleError, msgspec.ValidationError):
            continue
        shown_pages += 1
    assert shown_pages


def test_a_matrix_that_is_no_square_is_an_error() -> None:
    document = evaluation_document()
    assert document.confusion is not None
    confusion = replace(document.confusion, counts=((1, 2), (3,)))
    with pytest.raises(FerruleError, match="matrix has 2 labels, and 1 rows or columns of counts"):
        html_page(replace(document, confusion=confusion))


def test_a_tensor_without_a_description_is_named() -> None:
    document = replace(inspection_document(), tensors=())
    assert "input 'input': not described" in Page(html_page(document)).text
