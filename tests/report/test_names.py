# SPDX-License-Identifier: Apache-2.0
"""What commands write as JSON and what Python returns have the same names, and the same types."""

from __future__ import annotations

import dataclasses
from typing import get_type_hints

import msgspec
import numpy as np
import pytest
import saved_documents

import ferrule
from ferrule.backends.target import Memory
from ferrule.boards import Board, load_board
from ferrule.errors import ModelError, Problem, together
from ferrule.evaluation.evaluate import Evaluation
from ferrule.firmware.arena import ArenaPart
from ferrule.firmware.fitting import BoardFit
from ferrule.report import RunReport
from ferrule.report.base import part_of
from ferrule.report.board_listing import ListedBoard, ListedMemory, list_boards
from ferrule.report.document import MemoryPart
from ferrule.report.evaluation_document import EvaluationDocument
from ferrule.report.failure_document import FailureDocument, ProblemPart
from ferrule.report.inspection import Inspection
from ferrule.report.reading import _KINDS
from ferrule.report.refusal import RefusedModel, refused_model
from ferrule.report.run_document import ReportDocument
from ferrule.report.sweep_document import SweepDocument, SweepRow

PAIRS = {ReportDocument: RunReport, EvaluationDocument: Evaluation, ProblemPart: Problem}
"""By the type of a JSON object: that of the object in Python, where it is another one."""


@pytest.mark.parametrize("written", PAIRS, ids=lambda kind: kind.__name__)
def test_what_python_returns_has_the_names_of_the_json(written: type) -> None:
    returned = PAIRS[written]
    assert dataclasses.is_dataclass(written)
    names = {field.name for field in dataclasses.fields(written)}
    assert names <= {field.name for field in dataclasses.fields(returned)}
    kinds, others = get_type_hints(written), get_type_hints(returned)
    optional = {"hint"} if written is ProblemPart else set()  # which JSON has as an empty text
    assert {name: kinds[name] for name in names - optional} == {name: others[name] for name in names - optional}


def test_the_values_are_those_of_the_json() -> None:
    report = RunReport.of(saved_documents.run_document(), [np.zeros(1)])
    evaluation = part_of(Evaluation, saved_documents.evaluation_document(), outputs=[np.zeros(1)], notes=("a note",))
    for returned in (report, evaluation):
        written = msgspec.json.decode(returned.to_json())
        for name, value in written.items():
            assert msgspec.json.decode(msgspec.json.encode(getattr(returned, name))) == value, name
        assert returned.document == type(returned.document)(
            **{each.name: getattr(returned, each.name) for each in dataclasses.fields(returned.document)}
        )
    assert evaluation.metric("accuracy") is evaluation.metrics[0]
    with pytest.raises(KeyError):
        evaluation.metric("none")


def test_the_other_objects_are_what_is_written() -> None:
    assert get_type_hints(ferrule.inspect)["return"] is Inspection
    hints = get_type_hints(Inspection)
    assert hints["boards"] == tuple[BoardFit, ...] | None
    assert hints["arena"] == ArenaPart | None
    assert get_type_hints(BoardFit)["arena"] == ArenaPart | None
    assert get_type_hints(MemoryPart)["arena"] is ArenaPart
    assert get_type_hints(SweepDocument)["rows"] == tuple[SweepRow, ...]
    assert {kind for kind, _ in _KINDS.values()} >= {ReportDocument, EvaluationDocument, Inspection, SweepDocument}


def test_the_listing_of_boards_has_the_names_of_a_board() -> None:
    for listed, kind, more in ((ListedBoard, Board, {"engines", "refusals"}), (ListedMemory, Memory, set())):
        names = {field.name for field in dataclasses.fields(listed)}
        assert more <= names
        assert names - more <= {field.name for field in dataclasses.fields(kind)}
    board = load_board("mps3-an547")
    (written,) = [each for each in list_boards().boards if each.name == board.name]
    assert written.cpu == board.cpu
    assert [each.kind for each in written.memories] == [str(each.kind) for each in board.memories]


def test_problems_have_one_form() -> None:
    assert get_type_hints(RefusedModel)["problems"] == get_type_hints(FailureDocument)["problems"]
    problems = [ModelError("it is wrong", hint="mend it") for _ in range(2)]
    for index, problem in enumerate(problems):
        problem.at(f"operator {index}", "RNN")
    error = together(problems, "layers")
    refused = refused_model("a.tflite", error)
    assert [msgspec.to_builtins(each) for each in error.problems] == [
        msgspec.to_builtins(each) for each in refused.problems
    ]
