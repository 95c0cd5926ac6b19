# SPDX-License-Identifier: Apache-2.0
"""Changes of everything that a sweep's runs read: after each, the old rows count no longer; undone, they do again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
import small_networks
from imported import forgotten
from needs import require_module

from ferrule.errors import FerruleError
from ferrule.evaluation.sweep import LocalWorkers, ResultsFile, carry_out_plan, read_plan
from ferrule.evaluation.sweep.inputs import SUFFIX, Inputs
from ferrule.formats import to_tflite
from ferrule.record import CHANGED, CONTENTS, Read
from ferrule.resources import root

GENERATOR = """
import json
from pathlib import Path
import helper
import numpy as np

HERE = Path(__file__).parent
SCALE = json.loads((HERE / "scale.json").read_text())

def samples():
    try:
        shift = np.load(HERE / "shift.npy")
    except FileNotFoundError:
        shift = 0
    with open(HERE / "pieces" / "names.txt", "rb") as file:
        file.read()
    for path in sorted((HERE / "pieces").glob("*.npy")):
        yield (np.load(path) * SCALE + shift + helper.VALUE).astype(np.float32), 1
"""
METRIC = """
from pathlib import Path
OFFSET = float((Path(__file__).parent / "offset.txt").read_text())

def own(outputs, labels):
    return OFFSET
"""


def written(folder: Path) -> Path:
    """Write a sweep of one model: on its own board, with a backend of its own, settings, data and a metric."""
    for name in ("boards", "pieces", "backends"):
        (folder / name).mkdir(parents=True)
    (folder / "dense.tflite").write_bytes(to_tflite(small_networks.dense()))
    shutil.copytree(root() / "boards" / "mps2-an386", folder / "boards" / "mine")
    shutil.copytree(root() / "boards" / "mps2", folder / "boards" / "mps2")
    backend = folder / "backends" / "swept_custom"  # other tests of this process may have a package my_custom
    shutil.copytree(root() / "examples" / "custom_backend" / "my_custom", backend)
    for path in (*backend.rglob("*.py"), backend / "backend.toml"):
        path.write_text(path.read_text(encoding="utf-8").replace("my_custom.", "swept_custom."), encoding="utf-8")
    (folder / "generator.py").write_text(GENERATOR, encoding="utf-8")
    (folder / "helper.py").write_text("VALUE = 0.5\n", encoding="utf-8")
    (folder / "scale.json").write_text("1.0", encoding="utf-8")
    (folder / "metric.py").write_text(METRIC, encoding="utf-8")
    (folder / "offset.txt").write_text("1", encoding="utf-8")
    (folder / "names.txt").write_text("a\nb\nc\nd\n", encoding="utf-8")
    (folder / "pieces" / "names.txt").write_text("", encoding="utf-8")
    for index in range(2):
        np.save(folder / "pieces" / f"{index}.npy", np.full((1, 6), index, np.float32))
    (folder / "ferrule.toml").write_text(
        '[backends]\nfolders = ["backends/swept_custom"]\n[data]\nclasses = "names.txt"\n', encoding="utf-8"
    )
    (folder / "sweep.toml").write_text(
        'models = ["dense.tflite"]\nboards = ["mine"]\nbackends = ["MyCustom,CpuAcc"]\n'
        '[data]\npath = "generator.py:samples"\nmetrics = ["accuracy", "metric.py:own"]\nproof = 1\n',
        encoding="utf-8",
    )
    return folder


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a sweep whose run is done, by a worker's process; its boards are found through the variable."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    folder = written(tmp_path_factory.mktemp("swept") / "sweep")
    with forgotten("swept_custom"), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("FERRULE_BOARDS", str(folder / "boards"))
        plan = read_plan(folder / "sweep.toml")
        with ResultsFile(folder / "sweep.jsonl") as results, LocalWorkers(1) as workers:
            document = carry_out_plan(plan, workers, results)
        assert [(row.status, row.error) for row in document.rows] == [("done", "")]
        yield folder


def reason(folder: Path) -> str | None:
    """Return why the row of the sweep does not count."""
    with ResultsFile(folder / "sweep.jsonl") as results:
        (run,) = results.statuses
        return results.changed(run, {"{sweep}": str(folder)})


def text(name: str, more: str) -> Callable[[Path], Callable[[], object]]:
    """Return a change that adds to a file, which returns what undoes it."""

    def change(folder: Path) -> Callable[[], object]:
        path = folder / name
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((before or b"") + more.encode())
        return path.unlink if before is None else lambda: path.write_bytes(before)

    return change


def gone(name: str) -> Callable[[Path], Callable[[], object]]:
    def change(folder: Path) -> Callable[[], object]:
        (folder / name).rename(folder.parent / "aside")
        return lambda: (folder.parent / "aside").rename(folder / name)

    return change


def piece(folder: Path) -> Callable[[], object]:
    path = folder / "pieces" / "0.npy"
    before = path.read_bytes()
    path.write_bytes(before[:-1] + b"\x01")
    return lambda: path.write_bytes(before)


CHANGES: Mapping[str, Callable[[Path], Callable[[], object]]] = {
    "model": text("dense.tflite", "x"),
    "board.toml": text("boards/mine/board.toml", "\n"),
    "platform of the board": text("boards/mine/mps2-an386.repl", "\n"),
    "platform that it includes": text("boards/mps2/mps2.repl", "\n"),
    "settings": text("ferrule.toml", "\n"),
    "class names": text("names.txt", "e\n"),
    "manifest of the backend": text("backends/swept_custom/backend.toml", "\n"),
    "module of the backend": text("backends/swept_custom/arithmetic.py", "\n"),
    "package of the backend": text("backends/swept_custom/__init__.py", "\n"),
    "another module beside the helper": text("other.py", ""),
    "generator": text("generator.py", "\n"),
    "its helper": text("helper.py", "\n"),
    "its helper is gone": gone("helper.py"),
    "a module before others": text("json.py", ""),
    "what it reads at import": text("scale.json", " "),
    "what it reads by numpy": piece,
    "what it reads by open": text("pieces/names.txt", "x"),
    "a piece more": text("pieces/2.npy", ""),
    "a piece less": gone("pieces/1.npy"),
    "what it has not found": text("shift.npy", ""),
    "metric": text("metric.py", "\n"),
    "what the metric reads": text("offset.txt", "0"),
    "boards are elsewhere": gone("boards"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_rows_do_not_count_for_changed_inputs(case: str, swept: Path) -> None:
    assert reason(swept) is None
    undo = CHANGES[case](swept)
    try:
        assert (reason(swept) or "").endswith("has changed")
    finally:
        undo()
    assert reason(swept) is None


def test_variables_count(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FERRULE_BOARDS", "FERRULE_BACKENDS", "FERRULE_DYNAMIC_BACKENDS", "PYTHONPATH"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "elsewhere")
            assert reason(swept) == f"{name} has changed"


@pytest.mark.parametrize(
    "change",
    [
        text("sweep.toml", "\n# a comment\n"),
        text("notes.txt", "x"),
        text("other.tflite", "x"),
        text("boards/README.md", "x"),
        text("backends/swept_custom/src_c/add_f32.c", "x"),  # the backend has no layer of this model
        text("out/report.html", "x"),
    ],
)
def test_rows_count_for_what_was_not_read(change: Callable[[Path], Callable[[], object]], swept: Path) -> None:
    undo = change(swept)
    found = reason(swept)
    undo()
    assert found is None


def test_a_warm_process_forgets_nothing(swept: Path) -> None:
    """The second run of a worker, whose first run has read almost everything, has a record that is as large."""
    plan = read_plan(swept / "sweep.toml")
    records = []
    for number in (1, 2):
        path = swept.parent / f"warm{number}.jsonl"
        with ResultsFile(path) as results, LocalWorkers(1) as workers:
            run = next(plan.runs({"zig": "", **_versions(plan)}))
            from ferrule.evaluation.sweep.run import carry_out, recorded

            for _ in range(number):
                row, reads = workers.submit((), recorded, carry_out, run).result()
            assert row.error == ""
            results.append(row, reads)
            records.append({each[:2] for each in reads})
    cold, warm = records
    assert {each for each in cold - warm if "{python}" not in each[0]} == set()


def _versions(plan: object) -> dict[str, str]:
    from ferrule.evaluation.sweep.run import versions

    return versions(plan.toolchains, plan.engines)  # type: ignore[attr-defined]


# --- the file of records ---

ONE, TWO = Read("/a", CONTENTS, "absent"), Read("/b", CONTENTS, "absent")


def test_records_are_kept_and_found(tmp_path: Path) -> None:
    path = tmp_path / f"rows{SUFFIX}"
    first = Inputs(path).keep((ONE, TWO))
    second = Inputs(path).keep((TWO,))
    assert Inputs(path).keep((ONE, TWO)) == first
    assert len(path.read_bytes().splitlines()) == 4
    found = Inputs(path)
    assert [found.changed(digest, {}) for digest in (first, second)] == [None, None]
    assert found.changed("", {}) == "what was read for it is not recorded"
    assert found.changed(Inputs(path).keep((ONE._replace(answer=CHANGED),)), {}) is not None


def test_a_torn_line_is_removed(tmp_path: Path) -> None:
    path = tmp_path / f"rows{SUFFIX}"
    digest = Inputs(path).keep((ONE, TWO))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert (Inputs(path).changed(digest, {}) is None) == (size == len(whole))
        assert Inputs(path).keep((ONE, TWO)) == digest
        assert Inputs(path).changed(digest, {}) is None


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b'["a", "b"]',
        b'["a", "b", 3]',
        b"x",
        b'{"record": "0", "reads": []}',
        b'{"record": "0", "reads": [[0, 9]]}',
        b'{"record": "0", "reads": [[-1, 0]]}',
        b'{"record": "0", "reads": [[0, 0], [0, 0]]}',
        b'{"record": "0", "reads": [[0, 1' + b"0" * 400 + b"]]}",
        b"\xff",
        b"[" * 5000,
    ],
)
def test_a_malformed_line_is_one_error(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"rows{SUFFIX}"
    Inputs(path).keep((ONE, TWO))
    with path.open("ab") as file:
        file.write(line + b"\n")
    with pytest.raises(FerruleError, match="line 4 is no record") as caught:
        Inputs(path)
    assert "delete the file" in (caught.value.hint or "")
