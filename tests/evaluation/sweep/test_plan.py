# SPDX-License-Identifier: Apache-2.0
"""Files of sweeps: which runs they have, what is refused before anything runs, and what a run's digest depends on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_models import model as onnx_model
from onnx_models import node

from ferrule.errors import FerruleError
from ferrule.evaluation.sweep import Plan, read_plan, sweep_file_schema
from ferrule.evaluation.sweep.axes import axes_of
from ferrule.evaluation.sweep.file import OptionsEntry, SweepFile
from ferrule.evaluation.sweep.run import read_model

Planned = Callable[..., Plan]
VERSIONS = {"ferrule": "1", "zig": "zig 1", "arm-none-eabi-gcc": "gcc 1"}
AXES = ("model", "board", "toolchain", "engine", "backends")
VALUES = ("a", "b", "c")


def runs(plan: Plan) -> list[tuple[str, ...]]:
    return [(run.board, *run.options.values()) for run in plan.runs(VERSIONS)]


def test_the_published_schema() -> None:
    published = Path(__file__).parents[3] / "docs" / "schemas" / "sweep.toml.json"
    assert published.read_text(encoding="utf-8") == json.dumps(sweep_file_schema(), indent=2) + "\n"


rows = st.dictionaries(
    st.sampled_from(("board", "engine", "goal")), st.lists(st.sampled_from(VALUES), min_size=1, unique=True), min_size=1
)


@settings(max_examples=50)
@given(
    st.fixed_dictionaries({axis: st.integers(1, 3) for axis in ("board", "engine", "goal")}),
    st.lists(rows, max_size=3),
    st.lists(rows, max_size=3),
)
def test_products_without_the_excluded_and_with_the_included(
    counts: dict[str, int], exclude: list[dict[str, Any]], include: list[dict[str, Any]]
) -> None:
    axes = {axis: VALUES[:count] for axis, count in counts.items()}
    main = {axis: axes.get(axis, ("a",)) for axis in AXES}
    known = {
        axis: {*values, *(value for row in include for value in row.get(axis, ()))} for axis, values in axes.items()
    }
    exclude = [row for row in exclude if all(set(row[axis]) <= known[axis] for axis in row)]
    sweep = SweepFile(
        models=("a",),
        options=OptionsEntry(goal=axes["goal"]),
        exclude=tuple({axis: tuple(values) for axis, values in row.items()} for row in exclude),
        include=tuple({axis: tuple(values) for axis, values in row.items()} for row in include),
    )
    found = [(each["board"], each["engine"], each["goal"]) for each in axes_of(sweep, main, lambda _: "none").choices()]
    names = ("board", "engine", "goal")
    product = [
        run
        for run in itertools.product(*(axes[name] for name in names))
        if not any(all(run[names.index(axis)] in row[axis] for axis in row) for row in exclude)
    ]
    more = [run for row in include for run in itertools.product(*(row.get(name, axes[name][:1]) for name in names))]
    assert found == list(dict.fromkeys([*product, *more]))


def test_rows_of_a_file(planned: Planned) -> None:
    plan = planned(
        'boards = ["mps2-an386", "mps2-an500"]\n[options]\ngoal = ["speed", "size"]',
        '[[exclude]]\nboard = "mps2-an386"\ngoal = "size"',
        '[[include]]\nboard = "mps2-an385"\ngoal = ["size", "memory"]',
    )
    assert runs(plan) == [
        ("mps2-an386", "speed"),
        ("mps2-an500", "speed"),
        ("mps2-an500", "size"),
        ("mps2-an385", "size"),
        ("mps2-an385", "memory"),
    ]
    assert len(plan) == 5


def test_questions_about_time_are_part_of_a_run(planned: Planned) -> None:
    """Each of them makes another run, and without any the digest is as it ever was."""
    heads = ("", "deadline = '50ms'", "deadline = '60ms'", "rate = '10/s'", "clock = 'cycles'")
    found = [next(planned(head=head).runs(VERSIONS)) for head in heads]
    assert len({run.digest for run in found}) == len(heads)
    assert [run.deadline for run in found] == [None, "50ms", "60ms", None, None]


def test_models_by_pattern(planned: Planned, model: Path) -> None:
    for name in ("b", "a"):
        model.with_name(f"net-{name}.tflite").write_bytes(model.read_bytes())
    plan = planned()
    path = plan.path
    path.write_text('models = ["net-?.tflite", "dense.tflite"]')
    assert [run.model for run in read_plan(path).runs(VERSIONS)] == ["net-a.tflite", "net-b.tflite", "dense.tflite"]


@pytest.mark.parametrize(
    ("lines", "message", "hint"),
    [
        ('boards = ["mps2-an38"]', "there is no board 'mps2-an38'", "mps2-an386"),
        ('toolchains = ["zigg"]', "there is no toolchain 'zigg'", "zig"),
        ('engines = ["quemu"]', "there is no engine 'quemu'", "qemu"),
        ('backends = ["CpuAcc, Wofles"]', "there is no backend 'Wofles'", "Woofles"),
        ('[options]\ngoal = ["fast"]', "there is no goal 'fast'", "balanced, memory, size, speed"),
        ('[options]\nrounding = ["tf"]', "there is no rounding 'tf'", "tflm"),
        ('[options]\noptimization = ["O9"]', "there is no optimization 'O9'", "O3, O2"),
        ('[options]\noverlap = ["maybe"]', "there is no overlap 'maybe'", "known: off, on"),
        ("[options]\ninput_rows = [true]", "expected the goal 'memory'", ""),
        ("[options]\ncolour = [1]", "unknown field `colour` - at `$.options`", ""),
        ("[options]\nseed = [1, 1]", "options.seed: '1' is given twice", ""),
        ("[options]\nseed = [-1]", "Expected `int` >= 0", ""),
        ("[backend_options.Woofles]\nquick = [true]", "has no option 'quick'", ""),
        ("[backend_options.Wofles]\nquick = [true]", "there is no backend 'Wofles'", "Woofles"),
        ("[[exclude]]\nbord = 'x'", "exclude[0]: the sweep has no axis 'bord'", "model, board, toolchain"),
        ("[[exclude]]\nboard = 'x'", "there is no board 'x' in this sweep, as exclude[0] has it", "mps2-an386"),
        ("[[exclude]]", "exclude[0]: it is empty", "axes: model"),
        ("[[include]]\nengine = 'quemu'", "there is no engine 'quemu'", "qemu"),
        ("[[include]]\nmodel = 'none.tflite'", "model none.tflite is not a file", "relative to"),
        ("[[needs]]\nmatch = { engine = 'unicorn' }\nlease = 'x'", "there is no lease 'x' as needs[0] has it", ""),
        ("[[needs]]\nmatch = { engine = 'unicorn' }\nresources = { A = 0 }", "Expected `float` > 0", ""),
        ("samples = 2", "needs options.seed", ""),
        ("boards = 3", "Expected `array`, got `int` - at `$.boards`", ""),
        ("boards = ['nrf52840dk']\nengines = ['qemu']", "engine qemu cannot run board nrf52840dk: ", "[[exclude]]"),
        ("deadline = '50'", "'50' is not a deadline", "50ms"),
        ("rate = 'often'", "'often' is not a rate", "10/s"),
        ("clock = 'seconds'", "Invalid enum value 'seconds' - at `$.clock`", ""),
        ("deadline = '50ms'\nengines = ['qemu']", "engine qemu has no model of a core's cycles", ""),
        ("[data]\npath = 'none.npy'", "data.path: there is no file none.npy", "relative to"),
        ("[data]\npath = 'sweep.toml'\nmetrics = ['accurate']", "there is no metric 'accurate'", "accuracy"),
        ("boards", "sweep.toml: ", ""),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_before_anything_runs(planned: Planned, lines: str, message: str, hint: str) -> None:
    with pytest.raises(FerruleError) as caught:
        planned(lines)
    assert message in str(caught.value)
    assert "sweep.toml" in str(caught.value)
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("models", ["[]", '["none.tflite"]', '["*.onnx"]', '["sweep.toml"]'])
def test_models_that_are_not_there(planned: Planned, models: str) -> None:
    path = planned().path
    path.write_text(f"models = {models}")
    with pytest.raises(FerruleError, match=r"models|none\.tflite is not a file|no file matches|sweep\.toml"):
        read_plan(path)


def test_a_digest_depends_on_what_decides_the_result(planned: Planned, model: Path, tmp_path: Path) -> None:
    def digests(*lines: str, versions: dict[str, str] | None = None, **more: object) -> list[str]:
        return [run.digest for run in planned(*lines, **more).runs(versions or VERSIONS)]

    first = digests(seeds=[1, 2])
    assert len(set(first)) == 2
    assert digests(seeds=[2, 1]) == first[::-1]
    assert digests("[[needs]]\nmatch = { seed = 1 }\nresources = { BOARD = 1 }", seeds=[1, 2]) == first
    assert not {*first} & {*digests(seeds=[1, 2], head="samples = 3")}
    assert not {*first} & {*digests(seeds=[1, 2], versions={**VERSIONS, "zig": "zig 2"})}
    assert not {*first} & {*digests(seeds=[1, 2], versions={**VERSIONS, "ferrule": "2"})}
    assert not {*first} & {*digests(seeds=[1, 2], versions={**VERSIONS, "Python": "4"})}
    model.write_bytes(model.read_bytes() + bytes(4))
    assert digests(seeds=[1, 2]) == first  # contents are in the record of a run


def test_a_digest_depends_on_data_and_configuration(
    planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digest(path: str) -> str:
        (run,) = planned(f'[data]\npath = "{path}"').runs(VERSIONS)
        return run.digest

    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros((2, 6), np.float32))
    np.save(tmp_path / "y.npy", np.zeros((2, 6), np.float32))
    first = digest("x.npy")
    second = digest("y.npy")
    (tmp_path / "ferrule.toml").write_text('goal = "size"\n')
    assert len({first, second, digest("x.npy")}) == 3


def test_the_project_gives_defaults(planned: Planned, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ferrule.toml").write_text('board = "mps2-an500"\ntoolchain = "arm-none-eabi-gcc"\nengine = "qemu"\n')
    (run,) = planned().runs(VERSIONS)
    assert (run.board, run.toolchain, run.engine) == ("mps2-an500", "arm-none-eabi-gcc", "qemu")


def test_each_board_has_an_engine_that_fits_it(planned: Planned) -> None:
    boards = 'boards = ["mps2-an386", "mps3-an547"]'
    fitting = [("mps2-an386", "unicorn"), ("mps3-an547", "qemu")]
    plan = planned(boards)
    assert [(run.board, run.engine) for run in plan.runs(VERSIONS)] == fitting
    assert plan.engines == ("unicorn", "qemu")
    excluded = planned(boards, "[[exclude]]\nengine = 'qemu'")
    assert [run.engine for run in excluded.runs(VERSIONS)] == ["unicorn"]
    more = planned(boards, "[[include]]\nboard = 'mps2-an386'\nengine = ['unicorn', 'qemu']")
    assert [(run.board, run.engine) for run in more.runs(VERSIONS)] == [*fitting, ("mps2-an386", "qemu")]
    added = planned("[[include]]\nboard = 'mps3-an547'")  # which has the first engine of the sweep: one that fits it
    assert [(run.board, run.engine) for run in added.runs(VERSIONS)] == fitting


def test_a_named_engine_is_that_of_all_boards(planned: Planned) -> None:
    with pytest.raises(FerruleError, match="engine unicorn cannot run board mps3-an547"):
        planned('boards = ["mps3-an547"]', 'engines = ["unicorn"]')


def test_later_needs_precede(planned: Planned) -> None:
    plan = planned(
        '[[needs]]\nmatch = { engine = "unicorn" }\nresources = { A = 1, B = 1 }\nport = "one"\nbaud = 9600',
        '[[needs]]\nmatch = { board = "mps2-an386" }\nresources = { B = 2 }\nport = "two"\nlease = "lab"',
        '[lease.lab]\nplace = "p"',
    )
    (run,) = plan.runs(VERSIONS)
    assert run.resources == (("A", 1), ("B", 2))
    assert (run.needs.port, run.needs.baud) == ("two", 9600)
    assert run.lease is not None
    assert run.lease.place == "p"


def test_shapes_of_inputs_are_an_axis(tmp_path: Path) -> None:
    extents: dict[str, tuple[str, list[Any]]] = {"x": ("float32", ["N", 4, "H", "W"])}
    made = onnx_model([node("MaxPool", "x", "y", kernel_shape=[2, 2])], extents)
    (tmp_path / "pooled.onnx").write_bytes(made.SerializeToString())

    def plan(*shapes: str) -> Plan:
        path = tmp_path / "sweep.toml"
        path.write_text(f'models = ["pooled.onnx"]\n[options]\nshapes = {json.dumps(shapes)}\n')
        return read_plan(path)

    found = []
    for run in plan("x=1,4,6,5", "x=1,4,8,8").runs(VERSIONS):
        (info,) = read_model(run.path, run.options).inputs
        found.append((run.options["shapes"], info.shape))
    assert found == [("x=1,4,6,5", (1, 4, 6, 5)), ("x=1,4,8,8", (1, 4, 8, 8))]
    for wrong, message in (
        ("x=1,4", r"input 'x' is given as \[1, 4\], and the file states \[N, 4, H, W\]"),
        ("y=1,4,6,5", "input 'y'"),
        ("x", "shapes x: expected NAME=EXTENTS"),
        ("x=1,4,6,5 x=1,4,6,6", "shapes gives the shape of 'x' several times"),
    ):
        with pytest.raises(FerruleError, match=message):
            plan(wrong)
