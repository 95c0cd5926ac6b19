# SPDX-License-Identifier: Apache-2.0
"""Options for backends: checked before the assignment, and reported if they have no effect."""

from __future__ import annotations

from typing import Any

import pytest
from optimizer_mocks import backend, line, registry

from ferrule.backends.option import BackendOption, OptionError, OptionValue
from ferrule.errors import FerruleError
from ferrule.optimizer import OptimizedNetwork, OptimizerOptions, optimize

OPTION = BackendOption(name="speed", default=1, lowest=1, highest=9, meaning="how fast")


def declaring(name: str, *options: BackendOption) -> Any:  # noqa: ANN401 - a class made here
    return type(name, (backend(name),), {"model_options": lambda self: options})


def run(given: dict[str, dict[str, OptionValue]], *options: BackendOption, hint: str = "") -> OptimizedNetwork:
    first, second = declaring("First", *options), declaring("Second", *options)
    chosen = OptimizerOptions(model_options=given, hints={"a": hint} if hint else {})
    return optimize(line("a"), ["First"], registry(first, second), chosen)


def test_an_option_that_is_declared_is_taken() -> None:
    assert run({"First": {"speed": 3}}, OPTION).messages == ()


@pytest.mark.parametrize("value", [0, 10, True, "3", 3.0])
def test_a_value_that_is_not_taken_is_an_error(value: OptionValue) -> None:
    with pytest.raises(
        OptionError, match=r"option 'speed' of backend First is .*, expected a whole number from 1 to 9"
    ):
        run({"First": {"speed": value}}, OPTION)


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(OptionError, match="backend First has no option 'sped'"):
        run({"First": {"sped": 1}}, OPTION)


def test_an_unknown_backend_is_an_error() -> None:
    with pytest.raises(FerruleError, match=r"there is no backend .*'Frist'"):
        run({"Frist": {"speed": 1}}, OPTION)


def test_options_of_a_backend_that_is_not_asked_have_no_effect() -> None:
    assert run({"Second": {"speed": 1}}, OPTION).warnings == (
        "the options of backend Second have no effect: it is not a candidate",
    )


def test_options_of_a_backend_that_a_hint_names_count() -> None:
    assert run({"Second": {"speed": 1}}, OPTION, hint="Second").messages == ()
    with pytest.raises(OptionError, match="option 'speed' of backend Second"):
        run({"Second": {"speed": 0}}, OPTION, hint="Second")


def test_an_option_for_firmware_has_no_effect_on_the_host() -> None:
    firmware = BackendOption(name="speed", default=1, meaning="how fast", host=False, firmware=True)
    assert run({"First": {"speed": 2}}, firmware).warnings == (
        "option 'speed' of backend First has no effect on the host",
    )
