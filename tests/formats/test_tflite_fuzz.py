# SPDX-License-Identifier: Apache-2.0
"""Damaged files give a network or a one-line FerruleError. `fuzz_tflite.py` does the same for longer."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest
from call_models import call_models
from hypothesis import given, settings
from hypothesis import strategies as st
from import_check import check_import
from mutation import mutate, mutate_values
from run_time_models import models as run_time_models
from sample_networks import valid_samples
from stored_weights import models_with_stored_weights

from ferrule.formats import to_tflite

SCRIPTED = [
    *(to_tflite(graph) for graph in valid_samples()),
    *call_models(),
    *models_with_stored_weights(),
    *run_time_models(),
]


def test_the_scripted_models_pass_the_check() -> None:
    assert all(check_import(data) for data in SCRIPTED)


@settings(max_examples=400)
@given(st.integers(0, len(SCRIPTED) - 1), st.integers(0, 2**32 - 1))
def test_damaged_scripted_models(index: int, seed: int) -> None:
    check_import(mutate(SCRIPTED[index], SCRIPTED, random.Random(seed)))


@settings(max_examples=400)
@given(st.integers(0, len(SCRIPTED) - 1), st.integers(0, 2**32 - 1))
def test_sound_files_with_wrong_numbers(index: int, seed: int) -> None:
    check_import(mutate_values(SCRIPTED[index], random.Random(seed)))


@settings(max_examples=100)
@given(st.binary(max_size=256), st.booleans())
def test_bytes_without_a_model(data: bytes, named: bool) -> None:
    check_import(data[:4] + b"TFL3" + data[4:] if named else data)


@pytest.mark.parametrize("stem", ["ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "vww_96_int8"])
def test_damaged_trained_models(models: Path, stem: str) -> None:
    data = (models / f"{stem}.tflite").read_bytes()
    choice = random.Random(stem)
    for _ in range(60):
        check_import(mutate(data, SCRIPTED, choice))


def test_memory_stays_near_the_size_of_the_file() -> None:
    choice = random.Random(5)
    tracemalloc.start()
    try:
        for _ in range(40):
            check_import(mutate(choice.choice(SCRIPTED), SCRIPTED, choice))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 32 << 20
