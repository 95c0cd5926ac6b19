# SPDX-License-Identifier: Apache-2.0
"""Options that backends declare: types, choices, limits, and the messages for invalid values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.backends.option import BackendOption, OptionError, OptionValue, check_options, parse_options, read_value
from ferrule.backends.registry import default_registry

FAST = BackendOption(name="fast", default=False, meaning="be fast")
THREADS = BackendOption(name="threads", default=0, lowest=0, highest=8, meaning="how many")
SCALE = BackendOption(name="scale", default=1.0, lowest=0, meaning="a factor")
MODE = BackendOption(name="mode", default="auto", choices=("auto", "slow"), meaning="how")
LABEL = BackendOption(name="label", default="", meaning="any name")
ALL = (FAST, THREADS, SCALE, MODE, LABEL)
LISTED = (
    "options of Npu: fast: true or false; threads: a whole number from 0 to 8; scale: a number from 0; "
    "mode: one of auto, slow; label: a text"
)


def test_texts_become_values_of_their_types() -> None:
    texts = {"fast": "true", "threads": "2", "scale": "3", "mode": "slow", "label": "7"}
    values = parse_options("Npu", ALL, texts)
    assert values == {"fast": True, "threads": 2, "scale": 3.0, "mode": "slow", "label": "7"}
    assert [type(value) for value in values.values()] == [bool, int, float, str, str]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("fast", "1", "true or false"),
        ("fast", "True", "true or false"),
        ("threads", "two", "a whole number from 0 to 8"),
        ("threads", "2.0", "a whole number from 0 to 8"),
        ("threads", "9", "a whole number from 0 to 8"),
        ("threads", "-1", "a whole number from 0 to 8"),
        ("threads", "true", "a whole number from 0 to 8"),
        ("scale", "-0.5", "a number from 0"),
        ("scale", "nan", "a number from 0"),
        ("mode", "quick", "one of auto, slow"),
        ("mode", "", "one of auto, slow"),
    ],
)
def test_a_text_that_is_no_value_is_refused(name: str, text: str, expected: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse_options("Npu", ALL, {name: text})
    assert str(caught.value) == f"option '{name}' of backend Npu is {text!r}, expected {expected}"
    assert caught.value.hint == LISTED


@pytest.mark.parametrize(("name", "value"), [("fast", 1), ("threads", True), ("threads", 1.0), ("label", 7)])
def test_a_value_of_another_type_is_refused(name: str, value: OptionValue) -> None:
    with pytest.raises(OptionError, match=f"option '{name}' of backend Npu is {value!r}"):
        check_options("Npu", ALL, {name: value})


def test_a_whole_number_is_a_number() -> None:
    check_options("Npu", ALL, {"scale": 2})


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^backend Npu has no option 'thread'$") as caught:
        check_options("Npu", ALL, {"thread": 1})
    assert caught.value.hint == LISTED
    with pytest.raises(OptionError) as caught:
        parse_options("Npu", (), {"thread": "1"})
    assert caught.value.hint == "options of Npu: none"


def test_a_backend_that_declares_nothing_takes_whatever_comes() -> None:
    assert parse_options("Npu", None, {"a": "1", "b": "x"}) == {"a": 1, "b": "x"}
    check_options("Npu", None, {"a": 1})


@given(st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False)))
def test_values_are_read_as_they_are_written(value: OptionValue) -> None:
    read = read_value(str(value).lower())
    assert (read, type(read)) == (value, type(value))


@given(st.text())
def test_any_text_is_a_value_or_an_option_error(text: str) -> None:
    for option in ALL:
        try:
            (value,) = parse_options("Npu", ALL, {option.name: text}).values()
        except OptionError:
            continue
        assert option.accepts(value)


@pytest.mark.parametrize("backend", ["CpuAcc", "CpuRef", "GpuAcc"])
def test_the_defaults_of_shipped_backends_are_accepted(backend: str) -> None:
    declared = default_registry().create(backend).model_options()
    assert declared is not None
    check_options(backend, declared, {option.name: option.default for option in declared})
    assert len({option.name for option in declared}) == len(declared)
    assert all(option.host or option.firmware for option in declared)
