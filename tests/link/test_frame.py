# SPDX-License-Identifier: Apache-2.0
import zlib

from hypothesis import given
from hypothesis import strategies as st

from ferrule.link.frame import Frame, FrameReceiver

byte = st.integers(0, 255)
frames = st.builds(Frame, version=byte, type=byte, sequence=st.integers(0, 65535), payload=st.binary(max_size=1024))
FRAME = Frame(version=1, type=5, sequence=0x0201, payload=b"\x00\x07")


def test_layout() -> None:
    body = bytes([1, 5, 0x01, 0x02, 0x00, 0x07])
    crc = zlib.crc32(body).to_bytes(4, "little")
    assert 0 not in crc
    assert FRAME.encode() == b"\0" + bytes([5, 1, 5, 1, 2, 6, 7]) + crc + b"\0"


@given(st.lists(frames, max_size=4), st.integers(1, 50))
def test_frames_survive_any_cutting(sent: list[Frame], step: int) -> None:
    wire = b"".join(frame.encode() for frame in sent)
    receiver = FrameReceiver()
    came = [frame for at in range(0, len(wire), step) for frame in receiver.feed(wire[at : at + step])]
    assert came == sent
    assert receiver.damaged == 0


def test_no_single_fault_gives_a_wrong_frame() -> None:
    wire = FRAME.encode()
    for at in range(len(wire)):
        changed = [wire[:at] + wire[at + 1 :], wire[: at + 1] + wire[at:]]
        changed += [wire[:at] + bytes([value]) + wire[at + 1 :] for value in range(256)]
        changed += [wire[:at] + bytes([value]) + wire[at:] for value in range(256)]
        for damaged in changed:
            came = list(FrameReceiver().feed(damaged + FRAME.encode()))
            assert came in ([FRAME], [FRAME, FRAME])


@given(st.binary(max_size=3000), frames)
def test_noise_before_a_frame_is_dropped(noise: bytes, frame: Frame) -> None:
    assert list(FrameReceiver().feed(noise + frame.encode()))[-1] == frame


def test_an_endless_stream_without_delimiters_is_forgotten() -> None:
    receiver = FrameReceiver()
    for _ in range(100):
        assert not list(receiver.feed(b"x" * 1000))
    assert receiver.damaged > 5
    assert len(receiver._pending) <= 9192
    assert list(receiver.feed(FRAME.encode())) == [FRAME]
