# SPDX-License-Identifier: Apache-2.0
"""The budget: both sides of each limit, scopes, threads, and the texts of `--limit`."""

from __future__ import annotations

import threading

import pytest

import ferrule
from ferrule.budget import (
    DEFAULTS,
    Resource,
    Tally,
    afford,
    amount_of,
    anew,
    begun,
    current,
    held,
    hold,
    limits,
    parse,
    spelled,
)
from ferrule.errors import BudgetError, FerruleError


@pytest.mark.parametrize("resource", Resource)
def test_the_limit_itself_is_allowed_and_one_more_is_not(resource: Resource) -> None:
    with limits(**{resource: 1000}):
        afford(resource, 1000, "it")
        with pytest.raises(BudgetError, match=r"it takes 1,001 .*, and the limit is 1,000") as caught:
            afford(resource, 1001, "it")
        assert f'ferrule.limits({resource}="1001' in str(caught.value.hint)


def test_the_defaults_hold_without_a_budget() -> None:
    for resource, limit in DEFAULTS.items():
        afford(resource, limit, "it")
        with pytest.raises(BudgetError):
            afford(resource, limit + 1, "it")
    hold(DEFAULTS[Resource.BYTES], "it")  # which is the end of this work
    hold(1, "other work")


def test_bytes_that_are_held_count_until_they_are_released() -> None:
    with limits(bytes=100):
        hold(60, "one")
        with (
            held(40, "two"),
            pytest.raises(BudgetError, match=r"three takes 1 bytes .* beside 100 that are held already"),
        ):
            afford(Resource.BYTES, 1, "three")
        afford(Resource.BYTES, 40, "three")
        with pytest.raises(BudgetError, match="beside 60"):
            hold(41, "four")
        with anew():
            hold(100, "a piece of its own")
        hold(40, "five")
        afford(Resource.ELEMENTS, DEFAULTS[Resource.ELEMENTS], "elements are not held")


def test_limits_are_inherited_one_by_one() -> None:
    with limits(bytes=100, elements="2Ki"), limits(bytes=50):
        assert current().limits == {**DEFAULTS, Resource.BYTES: 50, Resource.ELEMENTS: 2048}
    assert current().limits == DEFAULTS


def test_work_inside_other_work_shares_its_budget() -> None:
    with begun():
        outer = current()
        with begun():
            assert current() is outer
        hold(DEFAULTS[Resource.BYTES], "it")
        with pytest.raises(BudgetError):
            hold(1, "more")


def test_threads_of_the_work_have_its_limits() -> None:
    seen: list[int] = []
    with limits(bytes=77):
        thread = threading.Thread(target=lambda: seen.append(current().limits[Resource.BYTES]))
        thread.start()
        thread.join()
    assert seen == [77]


def test_a_tally_adds_up() -> None:
    tally = Tally()
    with limits(multiplications=10):
        tally.spend(Resource.MULTIPLICATIONS, 6, "one")
        tally.spend(Resource.MULTIPLICATIONS, 4, "two")
        with pytest.raises(BudgetError, match="three takes 11 multiplications"):
            tally.spend(Resource.MULTIPLICATIONS, 1, "three")


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", 1),
        ("4GiB", 4 << 30),
        ("4Gi", 4 << 30),
        ("512MiB", 512 << 20),
        ("1_000", 1000),
        (" 2Ti ", 2 << 40),
        ("8B", 8),
    ],
)
def test_amounts_have_binary_units(text: str, amount: int) -> None:
    assert amount_of(text) == amount


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5GiB", "4GB", "4gib", "x", "9" * 5000, "1e9", "٣"])
def test_what_is_no_amount_is_named(text: str) -> None:
    with pytest.raises(FerruleError, match="is no amount, expected a whole number above 0") as caught:
        amount_of(text)
    assert "GiB" in str(caught.value.hint)


@pytest.mark.parametrize("amount", [1, 9999, 10_000, (1 << 30) + 1, 1 << 40, 1 << 62, 1 << 75])
@pytest.mark.parametrize("resource", Resource)
def test_the_amount_in_a_hint_suffices_and_can_be_read(resource: Resource, amount: int) -> None:
    assert amount <= amount_of(spelled(resource, amount)) < 1.1 * amount + 1


def test_options_are_parsed() -> None:
    assert parse(["bytes=4GiB,elements=1Gi", "multiplications=3"], "--limit") == {
        Resource.BYTES: 4 << 30,
        Resource.ELEMENTS: 1 << 30,
        Resource.MULTIPLICATIONS: 3,
    }
    for texts, reason in (
        (["bytes"], "expected RESOURCE=AMOUNT"),
        (["seconds=3"], "there is no limit 'seconds'"),
        (["bytes=1", "bytes=2"], "given twice"),
        (["bytes="], "is no amount"),
    ):
        with pytest.raises(FerruleError, match=reason):
            parse(texts, "--limit")


def test_the_public_name_refuses_others() -> None:
    with pytest.raises(FerruleError, match="there is no limit 'seconds'"), ferrule.limits(seconds=1):
        pass
