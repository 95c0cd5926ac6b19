# SPDX-License-Identifier: Apache-2.0
"""ferrule.toml and --device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ferrule.backends.registry import default_registry
from ferrule.errors import FerruleError
from ferrule.running.configuration import Configuration, configuration_schema, read_configuration

TEXT = """
board = "own/board"
toolchain = "arm-none-eabi-gcc"
optimization = "Os"
engine = "qemu"

[backends]
folders = ["own/npu"]

[devices.npu0]
backend = "CpuAcc"
binding = { base = 0x4002_0000, label = "npu" }
regions = ["ssram1"]

[devices.npu1]
backend = "CpuAcc"
activation_lead = 3
timeout_us = 5000
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "project.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_it_is_read(file: Path) -> None:
    configuration = read_configuration(file)
    assert configuration.board == str(file.parent / "own" / "board")
    assert (configuration.toolchain, configuration.optimization) == ("arm-none-eabi-gcc", "Os")
    assert configuration.engine == "qemu"
    assert configuration.folders == (file.parent / "own" / "npu",)
    first, second = configuration.devices
    assert (first.name, first.backend, first.regions) == ("npu0", "CpuAcc", ("ssram1",))
    assert (first.activation_lead, second.activation_lead) == (None, 3)
    assert (first.timeout_us, second.timeout_us) == (None, 5000)
    assert first.binding == {"base": 0x40020000, "label": "npu"}
    assert (second.name, second.backend, second.regions, second.binding) == ("npu1", "CpuAcc", (), {})
    with pytest.raises(FerruleError, match="own/npu is no backend's folder"):
        configuration.registry()


def test_the_data_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "project.toml"
    path.write_text(
        '[data]\nclasses = "labels.txt"\nscale = "1/255"\nresize = "bilinear"\n[data.audio]\nlonger = "pieces"\n',
        encoding="utf-8",
    )
    data = read_configuration(path).data
    assert data.classes == str(tmp_path / "labels.txt")
    assert (data.scale, data.resize, data.audio.longer, data.audio.channels) == ("1/255", "bilinear", "pieces", 40)
    path.write_text('[data]\nclasses = ["a", "b"]\n', encoding="utf-8")
    assert read_configuration(path).data.classes == ("a", "b")
    for text, message in [
        ('resize = "best"', "Invalid enum value 'best' - at `\\$.data.resize`"),
        ("resise = 1", "unknown field `resise` - at `\\$.data`"),
        ("audio = { channels = 0 }", "Expected `int` >= 1 - at `\\$.data.audio.channels`"),
    ]:
        path.write_text(f"[data]\n{text}\n", encoding="utf-8")
        with pytest.raises(FerruleError, match=message):
            read_configuration(path)


def test_a_name_is_no_path(tmp_path: Path) -> None:
    path = tmp_path / "ferrule.toml"
    path.write_text('board = "mps2-an505"\n', encoding="utf-8")
    configuration = read_configuration(path)
    assert (configuration.board, configuration.toolchain, configuration.engine) == ("mps2-an505", None, None)


def test_a_pool(tmp_path: Path) -> None:
    path = tmp_path / "ferrule.toml"
    path.write_text("".join(f'[devices.npu{index}]\nbackend = "SoftNpu"\npool = true\n' for index in range(2)))
    assert [(device.name, device.pool) for device in read_configuration(path).devices] == [
        ("npu0", True),
        ("npu1", True),
    ]
    path.write_text('[devices.npu0]\nbackend = "SoftNpu"\npool = "yes"\n')
    with pytest.raises(FerruleError, match="pool"):
        read_configuration(path)


def test_the_published_schema() -> None:
    published = Path(__file__).parents[2] / "docs" / "schemas" / "ferrule.toml.json"
    assert published.read_text(encoding="utf-8") == json.dumps(configuration_schema(), indent=2) + "\n"


def test_the_current_folder_has_it_or_not(tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_configuration() == Configuration()
    assert read_configuration().registry() is default_registry()
    file.rename(tmp_path / "ferrule.toml")
    assert [device.name for device in read_configuration().devices] == ["npu0", "npu1"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[devices.npu0]\nbackend = 3", r"\[devices\.npu0\]: Expected `str`, got `int` - at `\$\.backend`"),
        ("[devices.npu0]\nkind = 'X'", "missing required field `backend`|unknown field `kind`"),
        ("[devices.npu0]\nbackend = 'X'\nbase = 1", "unknown field `base`"),
        (
            "[devices.npu0]\nbackend = 'X'\nactivation_lead = -1",
            r"\[devices\.npu0\]: Expected `int` >= 0 - at `\$\.activation_lead`",
        ),
        ("[devices.npu0]\nbackend = 'X'\ntimeout_us = 0", r"Expected `int` >= 1 - at `\$\.timeout_us`"),
        ("[devices.npu0]\nbackend = 'X'\ntimeout_us = 2147483648", r"Expected `int` <= 2147483647 - at"),
        ("[devices.'1st']\nbackend = 'X'", r"\[devices\.1st\]: '1st' is not a device name, expected a C identifier"),
        ("devices = 3", r"Expected `object`, got `int` - at `\$\.devices`"),
        ("[devices]\nnpu0 = 3", r"\[devices\.npu0\]: Expected `object`, got `int`"),
        ("[backend]\nfolders = []", "unknown field `backend`"),
        ("[backends]\nfolders = 'x'", r"Expected `array`, got `str` - at `\$\.backends\.folders`"),
        ("[devices", "Expected|Unclosed|Invalid"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(file: Path, text: str, reason: str) -> None:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FerruleError, match=f"(?i){reason}") as caught:
        read_configuration(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FerruleError, match=r"no\.toml: No such file"):
        read_configuration(tmp_path / "no.toml")


def test_devices_of_the_command_line(file: Path) -> None:
    devices = read_configuration(file).with_devices(["npu1=GpuAcc", "npu2=CpuRef", "npu0=CpuRef"]).devices
    assert [(device.name, device.backend) for device in devices] == [
        ("npu0", "CpuRef"),
        ("npu1", "GpuAcc"),
        ("npu2", "CpuRef"),
    ]
    assert devices[0].binding["base"] == 0x40020000
    assert devices[1].activation_lead == 3


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["npu0"], "--device npu0: expected name=Backend"),
        (["npu0="], "--device npu0=: expected name=Backend"),
        (["=CpuAcc"], "'' is not a device name"),
        (["npu-0=CpuAcc"], "'npu-0' is not a device name, expected a C identifier"),
        (["a=CpuAcc", "a=CpuRef"], "--device a=CpuRef: device 'a' is given twice"),
    ],
)
def test_wrong_devices(options: list[str], reason: str) -> None:
    with pytest.raises(FerruleError, match=reason):
        Configuration().with_devices(options)


def test_transfers_between_backends(tmp_path: Path) -> None:
    path = tmp_path / "ferrule.toml"
    path.write_text('import_enabled = true\n[fallback]\nGpuAcc = "copy"\n', encoding="utf-8")
    configuration = read_configuration(path)
    assert configuration.import_enabled
    assert configuration.fallback_transfers == {"GpuAcc": "copy"}
    path.write_text('[fallback]\nGpuAcc = "move"\n', encoding="utf-8")
    with pytest.raises(FerruleError, match="move"):
        read_configuration(path)
