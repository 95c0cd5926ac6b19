# SPDX-License-Identifier: Apache-2.0
"""Sweeps of a small model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import small_networks

from ferrule import record
from ferrule.evaluation.sweep import Plan, read_plan
from ferrule.formats import to_tflite

Planned = Callable[..., Plan]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model file beside the sweep."""
    path = tmp_path / "dense.tflite"
    path.write_bytes(to_tflite(small_networks.dense()))
    return path


@pytest.fixture
def planned(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """A function that reads a sweep of the model with seeds and further lines of TOML.

    Jobs of the test's own process depend on nothing that other tests of this process have read, and changed since.
    """
    monkeypatch.setattr(record, "_PROCESS", record.Record())

    def plan(*lines: str, seeds: Iterable[int] = (), head: str = "") -> Plan:
        path = tmp_path / "sweep.toml"
        options = f"[options]\nseed = {list(seeds)}\n" if seeds else ""
        path.write_text(f'models = ["{model.name}"]\n{head}\n{options}' + "\n".join(lines), encoding="utf-8")
        return read_plan(path)

    return plan
