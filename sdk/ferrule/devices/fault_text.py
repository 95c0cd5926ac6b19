# SPDX-License-Identifier: Apache-2.0
"""Faults as text, for the command line: `npu0:never-done@12`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields

from ferrule.devices.faults import (
    BusErrorAt,
    DmaErrorAt,
    Fault,
    FlippedData,
    FlippedValue,
    NeverDone,
    SpuriousInterrupt,
    StuckBit,
    WrongId,
)
from ferrule.errors import FerruleError, unknown_name

FAULTS: Mapping[str, type[Fault]] = {
    "stuck-bit": StuckBit,
    "wrong-id": WrongId,
    "never-done": NeverDone,
    "spurious-interrupt": SpuriousInterrupt,
    "bus-error": BusErrorAt,
    "flipped-value": FlippedValue,
    "flipped-data": FlippedData,
    "dma-error": DmaErrorAt,
}
"""Fault classes by the name that users write."""
_MOMENTS = ("at", "since")


def parse_fault(text: str) -> tuple[str, Fault]:
    """Return the device's name and the fault that `DEVICE:FAULT[@NUMBER][,KEY=VALUE...]` describes.

    NUMBER is the number, counted from 0, of the access or transfer at which the fault strikes. The keys are the fault's
    other fields.

    Raises:
        FerruleError: the text is malformed, or it names an unknown fault or field; the message lists the known ones.
    """
    device, separator, rest = text.partition(":")
    head, *pairs = rest.split(",")
    name, at, number = head.partition("@")
    if not separator or not device or not name:
        raise FerruleError(f"fault '{text}' is not DEVICE:FAULT[@NUMBER][,KEY=VALUE...]", hint="npu0:never-done@12")
    kind = FAULTS.get(name)
    if kind is None:
        raise unknown_name("fault", name, FAULTS)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    moment = next((field for field in _MOMENTS if field in known), None)
    given = dict(_pair(pair, text) for pair in pairs)
    if at:
        if moment is None:
            raise FerruleError(f"fault '{text}': {name} is always active and takes no @NUMBER")
        given[moment] = number
    for key in given:
        if key not in known:
            raise unknown_name("value", key, known, where=f"of the fault {name}")
    for key, field in known.items():
        if field.default is MISSING and key not in given:
            missing = "@NUMBER" if key == moment else f"{key}=NUMBER"
            raise FerruleError(f"fault '{text}' has no {missing}")
    return device, kind(**{key: _number(value, text) for key, value in given.items()})


def _pair(pair: str, text: str) -> tuple[str, str]:
    key, separator, value = pair.partition("=")
    if not separator:
        raise FerruleError(f"fault '{text}' has '{pair}', expected KEY=VALUE")
    return key, value


def _number(value: str, text: str) -> int:
    try:
        number = int(value, 0)
    except ValueError:
        number = -1
    if number < 0:
        raise FerruleError(f"fault '{text}' has '{value}', expected a number of 0 or more, such as 12 or 0x0C")
    return number
