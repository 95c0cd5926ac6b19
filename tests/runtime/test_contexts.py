# SPDX-License-Identifier: Apache-2.0
"""Contexts of backends: which calls they receive, in which order, also after a failure."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from mock_backends import Diary, Mock, assigned, chain, mock, mock_with_context, registry_of, sample

from ferrule.backends.context import BackendUnavailableError, CreationOptions
from ferrule.backends.contract import BrokenBackendError
from ferrule.backends.cpu_ref import CpuRef
from ferrule.errors import FerruleError
from ferrule.runtime import NetworkLoadError, NetworkUnloadError, Runtime


def test_all_contexts_are_told_of_everything_in_order() -> None:
    """Contexts of backends that take no part in the network are called, too, as in Arm NN."""
    diary = Diary()
    registry = registry_of(mock_with_context("A", diary), Mock, mock_with_context("B", diary))
    with Runtime(registry=registry) as runtime:
        number = runtime.load_network(assigned(chain(), {}))
        runtime.enqueue_workload(number, [sample()])
        runtime.unload_network(number)
        second = runtime.load_network(assigned(chain(), {}))
    assert diary.lines == [
        f"{name} {moment} {network}"
        for network in (number, second)
        for moment in ("before_load", "after_load", "before_unload", "after_unload")
        for name in "AB"
    ]


def test_a_refused_load_tells_those_who_were_told_before() -> None:
    diary = Diary()
    registry = registry_of(
        mock_with_context("A", diary),
        mock_with_context("B", diary, {"before_load": False}),
        mock_with_context("C", diary),
        Mock,
    )
    with Runtime(registry=registry) as runtime:
        with pytest.raises(NetworkLoadError, match="backend 'B' refuses to load network 0"):
            runtime.load_network(assigned(chain(), {}))
        assert diary.lines == ["A before_load 0", "B before_load 0", "A after_load 0", "B after_load 0"]


@pytest.mark.parametrize("failing", ["assignment", "workload", "context"])
def test_a_load_that_fails_half_way_ends_with_after_load(failing: str) -> None:
    diary = Diary()

    def workload_factory(self: Mock, memory: object, options: object) -> None:
        raise OSError("no device")

    answers = {"before_load": ValueError("odd")} if failing == "context" else {}
    broken = mock("Broken", workload_factory=workload_factory)
    registry = registry_of(mock_with_context("A", diary), mock_with_context("B", diary, answers), Mock, broken)
    optimized = assigned(chain(), {}, broken if failing == "workload" else Mock)
    if failing == "assignment":
        optimized = replace(optimized, assignment={})
    error = NetworkLoadError if failing == "assignment" else BrokenBackendError
    with Runtime(registry=registry) as runtime:
        with pytest.raises(error):
            runtime.load_network(optimized)
        assert diary.lines == ["A before_load 0", "B before_load 0", "A after_load 0", "B after_load 0"]
        with pytest.raises(FerruleError, match="no loaded network"):
            runtime.enqueue_workload(0, [sample()])  # type: ignore[arg-type]
        if failing != "context":
            number = runtime.load_network(assigned(chain(), {}))
            runtime.enqueue_workload(number, [sample()])


def test_what_is_said_after_a_load_is_only_reported(caplog: pytest.LogCaptureFixture) -> None:
    diary = Diary()
    registry = registry_of(
        mock_with_context("A", diary, {"after_load": False, "after_unload": ValueError("odd")}),
        mock_with_context("B", diary),
        Mock,
    )
    with caplog.at_level(logging.WARNING), Runtime(registry=registry) as runtime:
        number = runtime.load_network(assigned(chain(), {}))
        runtime.unload_network(number)
    assert "backend 'A': after_load_network(0) returned False" in caplog.text
    assert "backend 'A': after_unload_network(0) failed" in caplog.text
    assert diary.lines[-1] == "B after_unload 0"


def test_a_refused_unload_leaves_the_network_loaded() -> None:
    diary = Diary()
    answers: dict[str, bool | Exception] = {"before_unload": False}
    registry = registry_of(mock_with_context("A", diary), mock_with_context("B", diary, answers), Mock)
    with Runtime(registry=registry) as runtime:
        number = runtime.load_network(assigned(chain(), {}))
        with pytest.raises(NetworkUnloadError, match="backend 'B' refuses to unload network 0"):
            runtime.unload_network(number)
        assert "A after_unload 0" not in diary.lines
        runtime.enqueue_workload(number, [sample()])
        answers.clear()
        runtime.unload_network(number)
        assert diary.lines[-2:] == ["A after_unload 0", "B after_unload 0"]


def test_nobody_stops_a_runtime_from_closing(caplog: pytest.LogCaptureFixture) -> None:
    diary = Diary()
    registry = registry_of(
        mock_with_context("A", diary, {"before_unload": False}),
        mock_with_context("B", diary, {"before_unload": ValueError("odd")}),
        Mock,
    )
    with caplog.at_level(logging.WARNING):
        runtime = Runtime(registry=registry)
        for _ in range(2):
            runtime.load_network(assigned(chain(), {}))
        runtime.close()
    assert [line for line in diary.lines if "unload" in line] == [
        f"{name} {moment} {network}"
        for network in (0, 1)
        for moment in ("before_unload", "after_unload")
        for name in "AB"
    ]
    assert "before_unload_network(1) returned False" in caplog.text


def unavailable(self: Mock, options: CreationOptions) -> None:
    raise BackendUnavailableError("there is no such chip on this machine")


def crashing(self: Mock, options: CreationOptions) -> None:
    raise ZeroDivisionError("oops")


def test_unavailable_backends_are_hidden_with_the_reason() -> None:
    registry = registry_of(mock("Absent", context=unavailable), mock("Crashing", context=crashing), Mock)
    with Runtime(registry=registry) as runtime:
        assert runtime.registry.ids() == (Mock.id,)
        assert {row.id: row.reason for row in runtime.backends} == {
            "Absent": "there is no such chip on this machine",
            "Crashing": "backend 'Crashing' failed in context(): ZeroDivisionError: oops",
            "Mock": "",
        }
        with pytest.raises(NetworkLoadError, match="'Absent' is not usable"):
            runtime.load_network(assigned(chain(), {}, mock("Absent")))
    assert registry.ids() == ("Absent", "Crashing", "Mock"), "another runtime may find it available"


def test_a_broken_factory_costs_its_own_row() -> None:
    registry = registry_of(CpuRef)
    registry.register("Null", lambda: None, origin="vendor")  # type: ignore[arg-type,return-value]
    with Runtime(registry=registry) as runtime:
        assert runtime.registry.ids() == (CpuRef.id,)
        (row,) = [row for row in runtime.backends if row.reason]
        assert (row.id, row.origin.place) == ("Null", "vendor")
        assert "returns NoneType" in row.reason


def test_contexts_get_the_options_and_live_with_the_runtime() -> None:
    seen: list[CreationOptions] = []

    def context(self: Mock, options: CreationOptions) -> None:
        seen.append(options)

    options = CreationOptions(backend_options={"Curious": {"threads": 3}})
    with Runtime(options, registry_of(mock("Curious", context=context))):
        assert seen == [options]


@pytest.mark.parametrize("kind", ["custom_allocators", "backend_options"])
def test_options_for_unknown_backends_are_errors(kind: str) -> None:
    registry = registry_of(Mock)
    with pytest.raises(FerruleError, match="no backend 'Mok'"):
        Runtime(CreationOptions(**{kind: {"Mok": {}}}), registry)  # type: ignore[arg-type]
