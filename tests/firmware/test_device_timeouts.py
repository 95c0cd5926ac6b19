# SPDX-License-Identifier: Apache-2.0
"""The limit of the wait for a device's commands, from its declaration to the C that sets it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from device_networks import NPU0, NPU1, artifact

from ferrule.boards import load_board
from ferrule.codegen import Program
from ferrule.errors import FerruleError
from ferrule.firmware.platforms import PLATFORMS, ProjectRequest

SET = "status = ferrule_device_set_timeout(&npu1_device, 5000u);"


@pytest.mark.parametrize("platform", sorted(PLATFORMS))
def test_each_platform_sets_it(platform: str) -> None:
    board = load_board("mps2-an386")
    made = artifact(devices=(NPU0, replace(NPU1, timeout_us=5000)))
    program = Program(artifacts=(made,))
    request = ProjectRequest(program=program, board=board, toolchain="arm-none-eabi-gcc", optimization="O2")
    files = PLATFORMS[platform].files(request).generated
    (text,) = [data.decode() for name, data in files.items() if name.endswith("devices.c")]
    assert text.count("ferrule_device_set_timeout") == text.count(SET) == 1
    assert text.index("ferrule_device_init(&npu1_device)") < text.index(SET)
    bind = text.index("ferrule_device_bind", text.index("ferrule_device_init(&npu1_device)"))
    assert bind < text.index(SET)


@pytest.mark.parametrize("timeout_us", [0, -1, 1 << 31])
def test_it_has_limits(timeout_us: int) -> None:
    with pytest.raises(FerruleError, match=rf"device 'npu1': timeout_us is {timeout_us}, expected a whole number from"):
        replace(NPU1, timeout_us=timeout_us)
