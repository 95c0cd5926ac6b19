# SPDX-License-Identifier: Apache-2.0
"""The check of a device's binding: known fields, types, limits and defaults."""

from __future__ import annotations

import pytest

from ferrule.backends import BackendId, Device
from ferrule.backends.device import BindingNumber, read_binding
from ferrule.errors import FerruleError

NUMBERS = {
    "base": BindingNumber(high=0x1000, multiple_of=4),
    "lanes": BindingNumber(low=1, high=8, default=2),
}
TEXTS = {"port": "the name of a port"}


def device(**binding: str | int) -> Device:
    return Device(name="npu0", backend=BackendId("Npu"), binding=binding)


def test_defaults_stand_in_and_the_rest_is_absent() -> None:
    found = read_binding(device(), NUMBERS, TEXTS)
    assert (found.numbers, found.texts) == ({"lanes": 2}, {})


def test_what_is_given_is_returned() -> None:
    found = read_binding(device(base=0, lanes=8, port="left"), NUMBERS, TEXTS)
    assert (found.numbers, found.texts) == ({"base": 0, "lanes": 8}, {"port": "left"})


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"bass": 1}, "device 'npu0': Npu has no 'bass'"),
        ({"base": 0x1004}, "device 'npu0': base is 4100, expected a whole number from 0 to 0x1000"),
        ({"base": 6}, "device 'npu0': base is 0x6, expected a multiple of 4"),
        ({"lanes": 0}, "device 'npu0': lanes is 0, expected a whole number from 1 to 8"),
        ({"lanes": "2"}, "device 'npu0': lanes is '2', expected a whole number from 1 to 8"),
        ({"lanes": True}, "device 'npu0': lanes is True, expected a whole number from 1 to 8"),
        ({"port": 1}, "device 'npu0': port is 1, expected the name of a port"),
    ],
)
def test_a_wrong_field_is_named(binding: dict[str, str | int], message: str) -> None:
    with pytest.raises(FerruleError) as caught:
        read_binding(device(**binding), NUMBERS, TEXTS)
    assert str(caught.value) == message


def test_the_hint_lists_the_fields() -> None:
    with pytest.raises(FerruleError) as caught:
        read_binding(device(bass=1), NUMBERS, TEXTS)
    assert caught.value.hint == "its binding may have port, base, lanes"
