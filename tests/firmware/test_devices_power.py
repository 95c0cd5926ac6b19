# SPDX-License-Identifier: Apache-2.0
"""The place for power and clock code of a project's user, and what a driver states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from device_networks import artifact, job

from ferrule.boards import load_board
from ferrule.codegen import Program
from ferrule.firmware import build_project, write_project
from ferrule.firmware.platforms import PLATFORMS, ProjectFiles, ProjectRequest

MINE = """
static int32_t gate_on(void *context)
{
    (void)context;
    return FERRULE_OK;
}

static int32_t gate_off(void *context)
{
    (void)context;
    return FERRULE_OK;
}

static const struct ferrule_bare_metal_power gate = {.on = gate_on, .off = gate_off};
#define NPU1_POWER &gate
"""


def files(platform: str, *, power: str = "") -> ProjectFiles:
    """Return a project with two devices, the driver of the second of which states power code."""
    made = artifact()
    first, second = made.devices
    stated = replace(made, devices=(first, replace(second, driver=replace(second.driver, power=power))))
    board = load_board("mps2-an386")
    program = Program(artifacts=(stated,))
    request = ProjectRequest(program=program, board=board, toolchain="arm-none-eabi-gcc", optimization="O2")
    return PLATFORMS[platform].files(request)


@pytest.mark.parametrize(("platform", "macro"), [("bare-metal", "POWER"), ("cmsis", "ACCELERATOR")])
def test_the_place_is_the_user_s(platform: str, macro: str) -> None:
    found = files(platform)
    place = found.starters["devices_power.h"].decode()
    assert f"Its macros: NPU0_{macro}, NPU1_{macro}." in place
    assert "#define" not in [line.split()[0] for line in place.splitlines() if line.strip()], "all of it is a comment"
    devices = found.generated["devices.c"].decode()
    assert '#include "devices_power.h"' in devices
    assert f"NPU1_{macro}" in devices


def test_a_driver_may_state_its_own_power_code() -> None:
    devices = files("bare-metal", power="acme_power").generated["devices.c"].decode()
    assert "#define NPU0_POWER NULL\n" in devices
    assert "#define NPU1_POWER &acme_power\n" in devices


def test_zephyr_has_power_domains_instead() -> None:
    found = files("zephyr")
    assert not [name for name in (*found.generated, *found.starters) if "devices_power" in name]


@pytest.mark.cc
def test_a_generation_keeps_and_a_build_uses_it(tmp_path: Path) -> None:
    made, wanted = artifact(), replace(job(), out=tmp_path / "project")
    project = write_project(made, wanted)
    assert not build_project(project).has("gate_off")
    place = tmp_path / "project" / "devices_power.h"
    mine = place.read_text(encoding="utf-8") + MINE
    place.write_text(mine, encoding="utf-8")
    project = write_project(made, wanted)
    assert place.read_text(encoding="utf-8") == mine
    image = build_project(project)
    assert image.has("gate_on")
    assert image.has("gate_off")
