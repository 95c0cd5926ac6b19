# SPDX-License-Identifier: Apache-2.0
"""A fault of a plug-in ends a command with its own message and the exit code for users, never as a bug of Ferrule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PACKAGE = """
from ferrule.backends.backend import Backend, Support
from ferrule.backends.firmware import LoweredOp

class Bad(Backend):
    id = "Bad"
    def layer_support(self):
        return self
    def supports(self, graph, layer, target):
        return Support()
    def firmware_target(self):
        return self
    def lower(self, context):
        return LoweredOp(kernel="k")
    {method}

def make():
    return Bad()
"""
FAULTS = {
    "supports": ("def supports(self, *given): return None", "returned None from supports()"),
    "capabilities": ("def capabilities(self): return None", "returned None from capabilities(), expected Mapping"),
    "model_options": ("def model_options(self): return 3", "returned an int from model_options()"),
    "optimize": ("def optimize_subgraph(self, *given): return None", "returned None from optimize_subgraph()"),
    "target": ("def firmware_target(self): return 1 / 0", "failed in firmware_target(): ZeroDivisionError"),
    "lower": ("def lower(self, context): return None", "returned None from lower() for layer"),
    "scratch": (
        "def lower(self, context): return LoweredOp(kernel='k', scratch_bytes=-8)",
        "returned a LoweredOp from lower() for layer 'fully_connected_0' (FULLY_CONNECTED): scratch_bytes is -8",
    ),
    "driver": ("def driver(self, device): return None", "returned None from driver() for device 'Bad'"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_command_names_the_backend_and_its_fault(
    ferrule: Callable[..., Any], dense: Path, tmp_path: Path, fault: str
) -> None:
    method, message = FAULTS[fault]
    folder = tmp_path / f"bad_{fault}"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE.replace("{method}", method), encoding="utf-8")
    (folder / "backend.toml").write_text(f'id = "Bad"\nfactory = "bad_{fault}:make"\n', encoding="utf-8")
    (tmp_path / "ferrule.toml").write_text(f'[backends]\nfolders = ["bad_{fault}"]\n', encoding="utf-8")
    option = ["--backend-option", "Bad.a=1"] if fault == "model_options" else []
    out = tmp_path / "project"
    outcome = ferrule(
        "generate", dense, "--config", tmp_path / "ferrule.toml", "--backends", "Bad", *option, "--out", out
    )
    assert outcome.code == 2, outcome
    assert f"backend 'Bad' {message}" in " ".join(outcome.err.split())
    assert "bug in ferrule" not in outcome.err
    assert not out.exists()
