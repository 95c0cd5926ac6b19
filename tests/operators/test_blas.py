# SPDX-License-Identifier: Apache-2.0
"""Matrix products use one thread of BLAS, and leave the setting of the process as it was."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Thread
from types import ModuleType

import numpy as np
import pytest
from needs import require_module

import ferrule
from ferrule import DataType, Network, TensorInfo
from ferrule.operators.arithmetic import blas
from ferrule.testing.backends.comparison import graph_difference

OPERATORS = Path(ferrule.__file__).parent / "operators"


@pytest.fixture
def control() -> Iterator[ModuleType]:
    """The module that controls the threads, with the setting at two threads."""
    require_module("threadpoolctl", "pip install 'ferrule[run]'")
    import threadpoolctl

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        yield threadpoolctl


def threads(control: ModuleType) -> set[int]:
    return {pool["num_threads"] for pool in control.threadpool_info() if pool["user_api"] == "blas"}


def network(units: int = 128) -> Network:
    made = Network("wide")
    x = made.add_input(TensorInfo("x", (4, units), DataType.FLOAT32))
    weights = np.random.default_rng(0).normal(size=(units, units)).astype(np.float32)
    made.set_outputs([made.add_fully_connected_layer(x, weights)])
    return made


def test_one_thread_while_it_is_held_and_the_old_setting_after(control: ModuleType) -> None:
    wanted = threads(control)
    with blas._ONE_THREAD.hold():
        assert threads(control) == {1}
    assert threads(control) == wanted
    with pytest.raises(ValueError, match="boom"), blas._ONE_THREAD.hold():
        raise ValueError("boom")
    assert threads(control) == wanted


def test_overlapping_uses_end_with_the_last(control: ModuleType) -> None:
    wanted = threads(control)
    first, second = blas._ONE_THREAD.hold(), blas._ONE_THREAD.hold()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads(control) == {1}
    second.__exit__(None, None, None)
    assert threads(control) == wanted


def test_products_in_many_threads_leave_the_setting(control: ModuleType) -> None:
    wanted = threads(control)
    left, right = np.ones((64, 64), np.float32), np.full((64, 64), 2, np.float32)
    ready, results = Barrier(4), []

    def work() -> None:
        ready.wait()
        results.extend(bool((blas.matrix_product(left, right) == 128).all()) for _ in range(20))

    pool = [Thread(target=work) for _ in range(4)]
    for each in pool:
        each.start()
    for each in pool:
        each.join()
    assert results == [True] * 80
    assert threads(control) == wanted


def test_the_reference_limits_its_threads(control: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    hold = blas._ONE_THREAD.hold

    @contextmanager
    def watched() -> Iterator[None]:
        with hold():
            seen.append(threads(control))
            yield

    monkeypatch.setattr(blas._ONE_THREAD, "hold", watched)
    network().run([np.ones((4, 128), np.float32)])
    assert seen == [{1}]
    network(8).run([np.ones((4, 8), np.float32)])
    assert seen == [{1}], "a small product needs no limit"


def test_without_the_package_the_results_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(1).normal(size=(4, 128)).astype(np.float32)
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    blas._libraries.cache_clear()
    try:
        assert not blas._libraries()
        without = network().run([x])[0]
    finally:
        blas._libraries.cache_clear()
    assert not graph_difference(network(), [x], [without])


@pytest.mark.parametrize("path", sorted(OPERATORS.glob("*.py")), ids=lambda path: path.name)
def test_no_kernel_calls_blas_otherwise(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        called = isinstance(node, ast.Attribute) and node.attr in {"dot", "matmul", "tensordot", "inner", "vdot"}
        assert path.name == "blas.py" or not (product or called), f"{path.name}:{node.lineno}: use matrix_product"
