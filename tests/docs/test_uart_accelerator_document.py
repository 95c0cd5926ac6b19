# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/uart_accelerator.md agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from ferrule.backends import BackendId, Device
from ferrule.backends.uart_woofles import UartWooflesModel
from ferrule.backends.uart_woofles.firmware import UartWooflesTarget
from ferrule.backends.uart_woofles.protocol import VERSION, ErrorCode, MessageType
from ferrule.cli.serve_accelerator import command
from ferrule.dom import Integer

TEXT = (Path(__file__).parents[2] / "docs" / "uart_accelerator.md").read_text(encoding="utf-8")


def test_the_messages() -> None:
    rows = re.findall(r"^\| ([A-Z]+) \| (0x[0-9A-F]{2}) \|", TEXT, re.MULTILINE)
    assert {name: int(number, 16) for name, number in rows} == {each.name: each.value for each in MessageType}
    (codes,) = re.findall(r"^Codes: ([^.]*)\.$", TEXT, re.MULTILINE)
    found = {name: int(number) for number, name in re.findall(r"(\d) ([A-Z]+)", codes)}
    assert found == {each.name: each.value for each in ErrorCode}
    assert f"Version: **{VERSION}**" in TEXT


def settings() -> dict[str, int]:
    table = TEXT[TEXT.index("| key | default") :]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([\d, ]+) \|", table, re.MULTILINE)
    found = {}
    for names, values in rows:
        numbers = [int(value) for value in values.split(",")]
        found |= dict(zip(re.findall(r"`(\w+)`", names), numbers, strict=True))
    return found


def test_the_settings_are_the_defaults() -> None:
    found = settings()
    target = UartWooflesTarget()
    driver = target.driver(Device(name="far", backend=BackendId("UartWoofles")))
    fields = {name: value.value if isinstance(value, Integer) else value for name, value in driver.context_fields}
    assert driver.wire is not None
    for name in ("memory_bytes", "store_bytes", "timeout_ms", "attempts"):
        assert fields[name] == found[name], name
    assert (driver.wire.baud, driver.activation_lead) == (found["baud"], found["activation_lead"])
    assert found["clock_hz"] == 0
    same = target.driver(Device(name="far", backend=BackendId("UartWoofles"), binding=found))
    assert same.context_fields == driver.context_fields


def test_the_example_of_settings_can_be_had() -> None:
    (text,) = re.findall(r"binding = \{ (uart = .*?) \}", TEXT)
    pairs = (pair.split(" = ") for pair in text.split(", "))
    binding = {key: value.strip('"') if '"' in value else int(value) for key, value in pairs}
    driver = UartWooflesTarget().driver(Device(name="far", backend=BackendId("UartWoofles"), binding=binding))
    assert driver.wire is not None
    assert driver.wire.uart == "uart2"
    assert driver.wire.model is not None
    assert isinstance(driver.wire.model(None), UartWooflesModel)


@pytest.mark.parametrize("option", ["--port", "--binding"])
def test_the_command_has_its_options(option: str) -> None:
    assert option in CliRunner().invoke(command, ["--help"]).output
    assert f"serve-accelerator {'--port' if option == '--port' else '--port listen'}" in TEXT
