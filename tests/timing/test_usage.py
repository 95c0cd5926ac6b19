# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.errors import FerruleError
from ferrule.timing.usage import parse_battery, parse_rate


@pytest.mark.parametrize(
    ("text", "per_second"),
    [("10/s", 10), ("6/min", Fraction(1, 10)), ("0.5/h", Fraction(1, 7200)), ("4/d", Fraction(1, 21600))],
)
def test_a_rate_is_exact(text: str, per_second: Fraction) -> None:
    rate = parse_rate(text)
    assert (rate.per_second, str(rate)) == (per_second, text)
    assert rate.period_s == pytest.approx(float(1 / per_second))


@pytest.mark.parametrize(("text", "capacity"), [("220mAh", 220), ("1.2Ah", 1200), ("0.1 mAh", Fraction(1, 10))])
def test_a_battery_is_exact(text: str, capacity: Fraction) -> None:
    battery = parse_battery(text)
    assert (battery.milliampere_hours, str(battery)) == (capacity, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a rate"),
        ("10", "'10' is not a rate"),
        ("10/ms", "'10/ms' is not a rate"),
        ("10/s ", "'10/s ' is not a rate"),
        ("-1/s", "'-1/s' is not a rate"),
        ("1e3/s", "'1e3/s' is not a rate"),
        ("nan/s", "'nan/s' is not a rate"),
        ("\u0661/s", "is not a rate"),
        ("9" * 50 + "/s", f"'{'9' * 40}...' is not a rate"),
        ("0/s", "rate '0/s' is not above 0 and at most 1,000,000/s"),
        ("1000001/s", "rate '1000001/s' is not above 0"),
    ],
)
def test_refuses_a_wrong_rate(text: str, message: str) -> None:
    with pytest.raises(FerruleError) as caught:
        parse_rate(text)
    assert message in str(caught.value)
    assert "10/s" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("220", "'220' is not a battery"),
        ("220mah", "'220mah' is not a battery"),
        ("220  mAh", "'220  mAh' is not a battery"),
        ("3.7V", "'3.7V' is not a battery"),
        ("0.0mAh", "battery '0.0mAh' is not above 0 and at most 1,000,000mAh"),
        ("1001Ah", "battery '1001Ah' is not above 0"),
    ],
)
def test_refuses_a_wrong_battery(text: str, message: str) -> None:
    with pytest.raises(FerruleError) as caught:
        parse_battery(text)
    assert message in str(caught.value)
    assert "220mAh" in str(caught.value.hint)


PIECES = st.lists(st.sampled_from([*"0123456789./-+eE ", "s", "min", "h", "d", "mAh", "Ah", "\n", "\u00b5", "nan"]))


@given(PIECES.map("".join) | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_rate, parse_battery):
        try:
            found = parse(text)
        except FerruleError as error:
            assert error.hint  # noqa: PT017
        else:
            assert str(found) == text
            assert text.isascii()


@given(st.integers(1, 10**6), st.sampled_from(["s", "min", "h", "d"]))
def test_a_rate_that_is_typed_is_the_rate_that_is_meant(number: int, unit: str) -> None:
    seconds = {"s": 1, "min": 60, "h": 3600, "d": 86400}[unit]
    assert parse_rate(f"{number}/{unit}").per_second * seconds == number
