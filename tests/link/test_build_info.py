# SPDX-License-Identifier: Apache-2.0
"""The firmware's statement of its build."""

from __future__ import annotations

import pytest
from host_link import HostFirmware

from ferrule.link import LinkError, LinkSession
from ferrule.link.protocol import BuildInfo


def test_the_firmware_states_its_build(session: LinkSession) -> None:
    build = session.build_info()
    assert build is not None
    assert (build.model, build.plan) == ("010203" + "00" * 13, "04" + "00" * 15)
    assert build.sources == "00" * 15 + "ff"
    assert build.sizes == (100, 20, 3000, 4, 50, 600, 70_000)
    assert (build.platform, build.board, build.flags) == ("host", "0123456789" * 20, "")
    assert build.compiler.startswith(("GCC ", "Clang "))


def test_a_firmware_without_an_identity_or_of_an_older_version_states_nothing(
    session: LinkSession, firmware: HostFirmware
) -> None:
    firmware.library.host_hide_identity()
    assert session.build_info() is None


def test_sizes_may_be_missing() -> None:
    texts = b"\x01p\x01b\x01c\x01f"
    build = BuildInfo.decode(bytes(range(48)) + b"\0" + texts)
    assert build.sizes is None
    assert (build.platform, build.board, build.compiler, build.flags) == ("p", "b", "c", "f")
    with pytest.raises(LinkError, match="it has 6 sizes, expected none or 7"):
        BuildInfo.decode(bytes(48) + b"\x06" + bytes(24) + texts)
