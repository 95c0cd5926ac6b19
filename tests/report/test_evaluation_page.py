# SPDX-License-Identifier: Apache-2.0
"""The page of an evaluation: both models and the board side by side, and what layers lose."""

from __future__ import annotations

from dataclasses import replace

import pytest
from page_reader import Page
from saved_documents import evaluation_document, quantization_document

from ferrule.report.document import Verdict
from ferrule.report.evaluation_document import EvaluationDocument, FlipPart, MetricPart
from ferrule.report.html import html_page
from ferrule.report.sections import State


def shown(document: EvaluationDocument) -> str:
    return Page(html_page(document)).text


def metric(
    value: float | None, low: float | None = None, high: float | None = None, better: str = "higher"
) -> MetricPart:
    return MetricPart(name="m", value=value, low=low, high=high, better=better)


def test_one_table_has_both_models_and_the_board() -> None:
    document = evaluation_document()
    text = shown(document)
    row = "accuracy 0.9000 0.9000 +0.0000 exact on 2 samples 0.8500 to 0.9400 (0.95) 0.8500 to 0.9400 (0.95) Wilson"
    assert f"metric value float model change on mps2-an386 interval interval of float by {row}" in text
    assert "auc undefined – – exact on 2 samples" in text, "a metric that is not known is none"
    assert document.proof is not None
    wrong = replace(document, proof=replace(document.proof, verdict=Verdict.DIFFERENT))
    assert "different on 2 samples" in shown(wrong)
    every = replace(document, proof=replace(document.proof, whole=True))
    assert "exact, all samples" in shown(every)
    alone = shown(replace(document, proof=None, float_model=None))
    assert "metric value interval by accuracy 0.9000 0.8500 to 0.9400" in alone


@pytest.mark.parametrize(
    ("mine", "its", "text", "state"),
    [
        (metric(0.5, 0.4, 0.6), metric(0.9, 0.8, 0.95), "-0.4000, worse", State.WARN),
        (metric(0.9, 0.8, 0.95), metric(0.5, 0.4, 0.6), "+0.4000", None),
        (metric(0.5, 0.4, 0.6), metric(0.6, 0.55, 0.7), "-0.1000", None),
        (metric(0.5), metric(0.9), "-0.4000", None),
        (metric(9.0, 8.0, 9.5, "lower"), metric(5.0, 4.0, 6.0, "lower"), "+4.0000, worse", State.WARN),
    ],
)
def test_a_change_is_worse_where_the_intervals_are_apart(
    mine: MetricPart, its: MetricPart, text: str, state: State | None
) -> None:
    cell = mine.change_from(its)
    assert cell is not None
    assert (cell.text, cell.state) == (text, state)


def test_a_change_of_an_undefined_metric_is_none() -> None:
    assert metric(None).change_from(metric(0.5)) is None
    assert metric(0.5).change_from(metric(None)) is None


def test_a_page_has_the_losses_and_the_flipped_samples() -> None:
    document = evaluation_document()
    assert document.float_model is not None
    assert "Losses" not in shown(document)
    flip = FlipPart(
        index=3, name="yes/3.png", expected="yes", float_label="yes", label="no", float_margin=0.25, margin=0.125
    )
    part = replace(
        document.float_model,
        flips=1,
        flipped=(flip,),
        losses=quantization_document().losses,
        compared=16,
        unmatched=2,
    )
    text = shown(replace(document, float_model=part))
    assert "yes/3.png yes yes no 0.25 0.125 lost" in text
    assert "# layer type stored as SQNR, dB own, dB cut off range unused 0 input input int8 40.0 40.0 25.0%" in text
    assert "1 conv_2d_0 CONV_2D int8 6.0 – 2.00% 25.0%" in text
    assert "Not compared: 2 layers without a tensor of the same name and shape in the float model" in text


def test_a_quantisation_with_labels_has_the_metrics_of_both_models() -> None:
    document = quantization_document()
    assert "metric value" not in Page(html_page(document)).text
    text = Page(html_page(replace(document, evaluation=evaluation_document()))).text
    assert "accuracy 0.9000 0.9000 +0.0000" in text
    assert "Note: the metrics are of the samples that chose the ranges" in text
