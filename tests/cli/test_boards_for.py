# SPDX-License-Identifier: Apache-2.0
"""`ferrule boards --for` and the boards of `ferrule inspect --fit`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import small_networks

from ferrule import boards
from ferrule.cli import usage
from ferrule.firmware.fitting import RankBy
from ferrule.formats import to_tflite
from ferrule.report.board_ranking import BoardRanking
from ferrule.report.inspection import Inspection

Ferrule = Callable[..., Any]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "dense.tflite"
    path.write_bytes(to_tflite(small_networks.dense()))
    return path


def test_the_options_name_what_boards_are_ranked_by() -> None:
    assert tuple(RankBy) == usage.RANKS


def test_all_boards_are_ranked(ferrule: Ferrule, model: Path) -> None:
    outcome = ferrule("boards", "--for", model, "--rate", "6/min", "--battery", "220mAh", "--by", "flash", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    ranking = msgspec.json.decode(outcome.out, type=BoardRanking)
    assert (ranking.model, ranking.by, ranking.rate, ranking.battery) == ("dense", "flash", "6/min", "220mAh")
    assert sorted(each.board for each in ranking.boards) == boards.board_names()
    sizes = [sum(need.need_bytes for need in each.memories if need.kind == "flash") for each in ranking.boards]
    assert sizes == sorted(sizes)
    for each in ranking.boards:
        assert each.use is not None
        assert each.use.instructions
        assert each.use.rate == "6/min"
    text = ferrule("boards", "--for", model).out
    assert "boards for 'dense', by time" in text


def test_an_inspection_has_the_same_order(ferrule: Ferrule, model: Path) -> None:
    listed = msgspec.json.decode(ferrule("boards", "--for", model, "--by", "ram", "--json").out, type=BoardRanking)
    shown = msgspec.json.decode(ferrule("inspect", model, "--fit", "--by", "ram", "--json").out, type=Inspection)
    assert shown.boards == listed.boards


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("boards", "--rate", "1/s"), "--rate: only valid with --for"),
        (("boards", "--by", "ram"), "--by: only valid with --for"),
        (("boards", "--goal", "speed"), "--goal: only valid with --for"),
        (("boards", "--for", "MODEL", "--battery", "1Ah"), "--battery needs a rate of inferences to last for"),
        (("boards", "--for", "MODEL", "--rate", "often"), "'often' is not a rate"),
        (("boards", "--for", "MODEL", "--rate", "1/s", "--battery", "1V"), "'1V' is not a battery"),
        (("boards", "--for", "MODEL", "--by", "price"), "'price' is not one of"),
        (("boards", "--for", "none.tflite"), "none.tflite"),
        (("inspect", "MODEL", "--rate", "1/s", "--battery", "1Ah"), "--rate and --battery: only valid with --fit"),
        (("inspect", "MODEL", "--fit", "--rate", "0/s"), "rate '0/s' is not above 0"),
    ],
)
def test_wrong_options_are_refused(ferrule: Ferrule, model: Path, arguments: tuple[str, ...], message: str) -> None:
    outcome = ferrule(*(model if each == "MODEL" else each for each in arguments))
    assert outcome.code == 2
    assert message in outcome.err
