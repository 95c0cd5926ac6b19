# SPDX-License-Identifier: Apache-2.0
"""What Vela is called with: configurations by the device's binding, and options, good and bad."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.backends.device import BackendId, Device
from ferrule.backends.ethos_u.backend import EthosU
from ferrule.backends.ethos_u.configuration import CONFIGURATIONS
from ferrule.backends.ethos_u.settings import Settings, settings_of, timeout_s
from ferrule.backends.option import OptionError, OptionValue, check_options
from ferrule.backends.target import Face, Target
from ferrule.errors import FerruleError, UnsupportedError

OWN = """\
[System_Config.Mine]
core_clock=100e6
axi0_port=Sram
axi1_port=OffChipFlash
[Memory_Mode.Mine]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0
"""


def settings(configuration: str | int | None = None, **options: OptionValue) -> Settings:
    binding = {} if configuration is None else {"configuration": configuration}
    device = Device(name="npu", backend=BackendId("EthosU"), binding=binding)
    return settings_of(Target(face=Face.HOST, device=device, options=options))


def test_the_defaults_are_those_of_vela() -> None:
    assert settings().arguments() == (
        *("--accelerator-config", "ethos-u55-128", "--config", "Arm/vela.ini"),
        *("--system-config", "Ethos_U55_High_End_Embedded", "--memory-mode", "Shared_Sram"),
        *("--optimise", "Performance"),
    )
    u65 = settings("ethos-u65-512")
    assert (u65.system_config, u65.memory_mode) == ("Ethos_U65_Client_Server", "Dedicated_Sram_384KB")
    assert timeout_s({}) == 600


@pytest.mark.parametrize("configuration", [each.name for each in CONFIGURATIONS])
def test_a_binding_names_the_configuration(configuration: str) -> None:
    assert settings(configuration).configuration.name == configuration


def test_options_become_arguments() -> None:
    given = settings(
        memory_mode="Sram_Only", system_config="Ethos_U55_Deep_Embedded", optimise="Size", arena_cache_bytes=4096
    )
    assert given.arguments()[4:] == (
        *("--system-config", "Ethos_U55_Deep_Embedded", "--memory-mode", "Sram_Only", "--optimise", "Size"),
        *("--arena-cache-size", "4096"),
    )


def test_a_file_of_the_user_has_names_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.ini"
    file.write_text(OWN)
    given = settings(config_file=str(file), system_config="Mine", memory_mode="Mine")
    assert given.arguments()[2:8] == (*("--config", str(file), "--system-config", "Mine", "--memory-mode", "Mine"),)
    assert given.config_text == OWN, "the contents belong to the digest of results"


@pytest.mark.parametrize(
    ("configuration", "options", "message"),
    [
        ("ethos-u85-256", {}, "device 'npu': the configuration 'ethos-u85-256' is not supported: Ethos-U85 has"),
        ("ethos-u55-512", {}, "device 'npu': there is no configuration of Ethos-U 'ethos-u55-512'"),
        (128, {}, "device 'npu': configuration is 128, expected a text such as 'ethos-u55-128'"),
        (None, {"system_config": "Ethos_U85_SYS_DRAM_Mid"}, "a system of Ethos-U85, which is not supported"),
        (None, {"system_config": "Ethos_U65_High_End"}, "which is no system of ethos-u55-128"),
        ("ethos-u65-256", {"system_config": "Ethos_U55_Deep_Embedded"}, "which is no system of ethos-u65-256"),
        (None, {"system_config": "Fast"}, "there is no system configuration 'Fast'"),
        (None, {"memory_mode": "Shared"}, "there is no memory mode 'Shared'"),
        (
            None,
            {"config_file": "/nowhere.ini", "system_config": "A", "memory_mode": "B"},
            "cannot read '/nowhere.ini': No",
        ),
        (None, {"config_file": __file__}, "option 'config_file' of backend EthosU: File contains no section headers"),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    configuration: str | int | None, options: dict[str, OptionValue], message: str
) -> None:
    with pytest.raises(FerruleError) as caught:
        settings(configuration, **options)
    assert message in str(caught.value)
    assert isinstance(caught.value, UnsupportedError) == ("85" in message)


@pytest.mark.parametrize(
    ("name", "value"),
    [("optimise", "Speed"), ("arena_cache_bytes", -1), ("arena_cache_bytes", 1 << 32), ("timeout_s", 0), ("cop", "2")],
)
def test_the_declared_options_have_limits(name: str, value: OptionValue) -> None:
    with pytest.raises(OptionError, match=f"'{name}'"):
        check_options("EthosU", EthosU().model_options(), {name: value})
    check_options("EthosU", EthosU().model_options(), {"optimise": "Size", "least_macs": 4, "timeout_s": 5})


def test_a_file_of_the_user_has_the_sections(tmp_path: Path) -> None:
    file = tmp_path / "mine.ini"
    file.write_text(OWN)
    with pytest.raises(FerruleError, match="needs option 'system_config'") as caught:
        settings(config_file=str(file))
    assert caught.value.hint == "the file has Mine"
    with pytest.raises(FerruleError, match="needs option 'memory_mode'"):
        settings(config_file=str(file), system_config="Mine")
    with pytest.raises(FerruleError, match="there is no section Memory_Mode 'Shared_Sram' in the file"):
        settings(config_file=str(file), system_config="Mine", memory_mode="Shared_Sram")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FerruleError, match="it is not text in UTF-8"):
        settings(config_file=str(file), system_config="A", memory_mode="B")
