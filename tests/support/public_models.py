# SPDX-License-Identifier: Apache-2.0
"""The collection of public models: which of them TensorFlow Lite Micro runs, Ferrule loads, and both agree on."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from audio_inputs import write_inputs

from ferrule._frozen import frozen

COLLECTION = Path(__file__).resolve().parents[1] / "models.toml"
FURTHER = COLLECTION.with_name("further_models.toml")
"""Models that were collected afterwards, to judge by."""
ONNX = COLLECTION.with_name("models_onnx.toml")
"""Public ONNX models, which `onnx_table` checks."""
LEAST = 100
"""The collection has at least this many models."""
AGREE = frozenset({"exact", "close"})
_WRONG = frozenset({"differs", "fails"})
_WORKER = Path(__file__).resolve().parent / "model_worker.py"
_SUFFIXES = {".tflite", ".lite", ".onnx"}


@frozen
class PublicModel:
    """A model's file in a public repository."""

    repository: str
    commit: str
    path: str
    sha256: str
    licence: str
    note: str = ""
    audio: str = ""
    """What the inputs are computed from sound as, see `audio_inputs`; empty for a model that is not for sound."""
    states: Mapping[str, str] = field(default_factory=dict)
    """By the name of an input: the output that the next run gets there."""
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By the name of an input: its shape, where an ONNX file leaves an extent open."""

    @property
    def name(self) -> str:
        """The repository and the path."""
        return f"{self.repository}: {self.path}"


@frozen
class Setting:
    """How models are checked; outcomes of one setting may be compared and kept."""

    boards: tuple[str, ...] = ()
    steps: int = 4
    """Length of the sequence of inputs."""
    board_steps: int = 2
    """How many of them a board runs."""
    audio: str = ""
    """The sound that the inputs come from: a WAV file, `synthetic`, or empty for random inputs."""
    limit_s: float = 120


@dataclass(slots=True)
class Outcome:
    """What the steps found for one model."""

    model: PublicModel
    tflm: str = ""
    """Empty if TensorFlow Lite Micro runs the model, else the reason why not."""
    blocks: list[str] = field(default_factory=list)
    """Why Ferrule does not load it; empty if it does."""
    verdict: str = ""
    """`exact`, `close` (floats within the documented tolerance), `differs`, or why there is no comparison."""
    steps: int = 0
    detail: str = ""
    boards: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By board: `verdict` (as above, or `too big`), `detail`, and the figures of the run."""

    @property
    def failed(self) -> bool:
        """Whether a result is wrong or missing; a refusal is not, nor is a model that a board has no room for."""
        return self.verdict in _WRONG or any(each["verdict"] in _WRONG for each in self.boards.values())

    def agrees(self, board: str | None = None) -> bool:
        """Return whether the results are those of TensorFlow Lite Micro, on a board too."""
        return self.verdict in AGREE and (board is None or self.boards[board]["verdict"] in AGREE)


def collection(path: Path = COLLECTION) -> list[PublicModel]:
    """Return the models of the committed list."""
    sources = tomllib.loads(path.read_text(encoding="utf-8"))["source"]
    return [
        PublicModel(repository=source["repository"], commit=source["commit"], licence=source["licence"], **model)
        for source in sources
        for model in source["model"]
    ]


def located(models: Iterable[PublicModel], folder: Path) -> dict[str, Path]:
    """Return the files of the folder by the SHA-256 of the models they are; each file is read once."""
    wanted = {model.sha256 for model in models}
    found: dict[str, Path] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _SUFFIXES and path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest in wanted:
                found.setdefault(digest, path)
    return found


def missing_lines(models: Iterable[PublicModel], files: Mapping[str, Path]) -> list[str]:
    """Return a line for each model whose file is not among those that `located` found: where it is."""
    return [
        f"missing: {model.name} at {model.commit}, SHA-256 {model.sha256}"
        for model in models
        if model.sha256 not in files
    ]


def blocking(blocks: Sequence[Sequence[str]]) -> list[tuple[str, list[int]]]:
    """Return each reason for a refusal with the positions of the models that it blocks, the most frequent first."""
    models: dict[str, list[int]] = {}
    for position, reasons in enumerate(blocks):
        for reason in dict.fromkeys(reasons):
            models.setdefault(reason, []).append(position)
    return sorted(models.items(), key=lambda item: (-len(item[1]), item[0]))


def check(model: PublicModel, path: Path, setting: Setting) -> Outcome:
    """Return the outcome of all steps of one model."""
    outcome = Outcome(model)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if setting.audio:
            (folder / "states.json").write_text(json.dumps(dict(model.states)), encoding="utf-8")
            sound = None if setting.audio == "synthetic" else Path(setting.audio)
            write_inputs(path.read_bytes(), model.audio, folder / "given.npz", setting.steps, sound)
        run = partial(step, path=path, folder=name, limit_s=setting.limit_s)
        oracle = run("tflm", setting.steps)
        outcome.tflm = oracle.get("error", "")
        loaded = run("load", 0)
        if "error" in loaded or not loaded["loads"]:
            outcome.blocks = reasons(loaded.get("blocks", [])) or [loaded.get("error", "no reason")]
            told = {reason.partition(":")[0] for reason in outcome.blocks}
            outcome.blocks += [
                f"{name}: this operator is not supported" for name in loaded.get("lacks", []) if name not in told
            ]
            return outcome
        if outcome.tflm:
            outcome.verdict = "no oracle"
        else:
            compared = run("compare", 0)
            outcome.verdict = compared.get("verdict", "fails")
            outcome.detail = compared.get("detail", compared.get("error", ""))
            outcome.steps = compared.get("steps", 0)
        for board in setting.boards:
            ran = run("board", setting.board_steps, board)
            outcome.boards[board] = {"verdict": "fails", "detail": ran["error"]} if "error" in ran else ran
    return outcome


def kept(model: PublicModel, setting: Setting, folder: Path | None) -> Outcome | None:
    """Return the outcome that the folder has for a model and a setting, unless it failed."""
    if folder is None or not _kept_at(model, folder).is_file():
        return None
    found = json.loads(_kept_at(model, folder).read_text(encoding="utf-8"))
    if found.pop("setting") != json.loads(json.dumps(asdict(setting))):
        return None
    outcome = Outcome(**(found | {"model": model}))
    return None if outcome.failed else outcome


def keep(outcome: Outcome, setting: Setting, folder: Path | None) -> None:
    """Store an outcome in the folder."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(outcome) | {"setting": asdict(setting)}, indent=1)
        _kept_at(outcome.model, folder).write_text(text + "\n", encoding="utf-8")


def _kept_at(model: PublicModel, folder: Path) -> Path:
    return folder / f"{model.sha256}.json"


def step(kind: str, number: int, *more: str, path: Path, folder: str, limit_s: float) -> dict[str, Any]:
    """Return the result of a step of `model_worker` in a process of its own, or an `error`."""
    words = [sys.executable, str(_WORKER), kind, str(path), folder, str(number), str(limit_s / 2), *more]
    try:
        ended = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"no result within {limit_s:g} s"}
    if ended.returncode == 0:
        result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
        return result
    said = [line for line in ended.stderr.splitlines() if line.strip()]
    plain = [line for line in said if not line.startswith((" ", "Traceback"))]
    reason = (plain or said or [""])[0] if kind == "tflm" else (said or [""])[-1]
    return {"error": f"status {ended.returncode}: {reason}"}


def reasons(lines: Sequence[str]) -> list[str]:
    """Return the reasons of a refusal without what is particular to one model: positions and names."""
    inner = [line.strip() for line in lines if line.startswith("  ")] or list(lines)
    return [_general(line) for line in inner]


def _general(line: str) -> str:
    line = re.sub(r"^CUSTOM '(.*?)'", r"CUSTOM \1", re.sub(r"^((.*?\.tflite|model): )?(operator \d+ )?", "", line))
    line = re.sub(r" -> tensor '.*?'(?=:|$)", "", line)
    line = re.sub(r"'[^']*'", "''", line)
    return re.sub(r"\[\d+(, ?\d+)*\]|\b\d{2,}\b|\d+\.\d+(e-?\d+)?", "N", line)
