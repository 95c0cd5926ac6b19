# SPDX-License-Identifier: Apache-2.0
"""A firmware with several models, of which the host chooses one."""

from __future__ import annotations

import numpy as np
import pytest
from host_link import HostChannel, HostFirmware, compile_host_firmware
from needs import require_module

from ferrule.link import FirmwareError, LinkError, LinkSession, RunFailedError
from ferrule.link.protocol import MessageType, ModelChoice

IMAGE = np.arange(30_900, dtype=np.uint8).reshape(1, 100, 103, 3)
BIAS = np.array([1, 2, 3], np.int16)


@pytest.fixture(scope="module")
def compiled_pair(host_cc: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> HostFirmware:
    require_module("cffi", "pip install 'ferrule[run]'")
    output = tmp_path_factory.mktemp("link") / "models.so"
    compile_host_firmware(host_cc, output, "-shared", "-fPIC", "-DFERRULE_LINK_MODELS=1")
    return HostFirmware(output)


@pytest.fixture
def pair(compiled_pair: HostFirmware) -> LinkSession:
    """The link of a firmware with the models "reverse" and "broken"."""
    compiled_pair.reset()
    return LinkSession(HostChannel(compiled_pair), timeout_s=0.0)


@pytest.mark.cc
def test_each_model_is_described_and_run(pair: LinkSession) -> None:
    assert pair.model_count() == 2
    assert pair.model_info().name == "reverse"
    pair.choose_model(1)
    info = pair.model_info()
    assert (info.name, info.input_hash, info.inputs) == ("broken", "11ee", ())
    assert pair.build_info() is None
    with pytest.raises(RunFailedError, match="FAILED"):
        pair.run([])
    pair.choose_model(0)
    assert np.array_equal(pair.run([IMAGE, BIAS]).outputs[0].ravel(), IMAGE.ravel()[::-1])


@pytest.mark.cc
def test_results_are_those_of_the_chosen_model(pair: LinkSession) -> None:
    pair.run([IMAGE, BIAS])
    pair.choose_model(1)
    with pytest.raises(FirmwareError, match="nothing has run yet"):
        pair._ask(MessageType.STACK)


@pytest.mark.cc
def test_a_new_session_begins_with_the_first_model(pair: LinkSession) -> None:
    pair.choose_model(1)
    assert pair.model_info().name == "broken"
    pair.hello()
    assert pair.model_info().name == "reverse"


@pytest.mark.cc
@pytest.mark.parametrize("index", [-1, 2])
def test_a_model_that_does_not_exist(pair: LinkSession, index: int) -> None:
    with pytest.raises(LinkError, match=f"has 2 model\\(s\\), numbered from 0, none has number {index}"):
        pair.choose_model(index)
    pair.hello()
    with pytest.raises(FirmwareError, match="no such model"):
        pair._ask(MessageType.CHOOSE_MODEL, 2)
    assert pair.model_info().name == "reverse"


def test_a_firmware_with_one_model_needs_no_choice(session: LinkSession) -> None:
    """It refuses the request, as firmware that is older than the request does."""
    assert session.model_count() == 1
    session.choose_model(0)
    assert session.model_info().name == "reverse"
    with pytest.raises(LinkError, match="none has number 1"):
        session.choose_model(1)


def test_a_choice_is_decoded() -> None:
    assert ModelChoice.decode(b"\x02\0\x01\0") == ModelChoice(count=2, chosen=1)
    with pytest.raises(LinkError, match="model 2 of 2 is chosen"):
        ModelChoice.decode(b"\x02\0\x02\0")
