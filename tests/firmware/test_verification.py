# SPDX-License-Identifier: Apache-2.0
"""Lying firmware: damage, other models of the same name, and digests that were copied, none of which may pass."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from children import ran
from damage import DAMAGES, RECORDED, Damage, in_section
from needs import require_module, require_program
from small_networks import dense

from ferrule import running
from ferrule._frozen import positional
from ferrule.errors import FerruleError
from ferrule.firmware import Job, build_project, emit, make_firmware, seal, write_project
from ferrule.firmware.image import Image, read_image
from ferrule.firmware.verification import Check, FirmwareVerification, State, compare_images, compare_tables, verify
from ferrule.report import Verdict

pytestmark = pytest.mark.cc
DENSE = dense()
EVERY = {**DAMAGES, **RECORDED}


@positional
class Built:
    job: Job
    image: Image

    def damaged(self, damage: Damage, path: Path) -> Image:
        path.write_bytes(damage(self.image.path.read_bytes(), self.image.path))
        return read_image(path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A firmware with a self-test."""
    require_module("ziglang", "pip install 'ferrule[run]'")
    job = Job(board="mps2-an386", self_test=True, out=tmp_path_factory.mktemp("built") / "fw")
    _, image = make_firmware(emit(DENSE, job), job)
    return Built(job=job, image=image)


def self_test(path: Path) -> tuple[str, ...] | None:
    return seal.damaged(path.read_bytes())


@pytest.mark.parametrize("name", EVERY)
def test_damage_never_passes(built: Built, tmp_path: Path, name: str) -> None:
    image = built.damaged(EVERY[name], tmp_path / "bad.elf")
    assert compare_images(image, built.image)[0] is State.DIFFERENT
    tables = compare_tables(image, emit(DENSE, built.job))
    in_tables = name.startswith(("weights", "attack: weights"))
    assert (tables[0] is State.DIFFERENT) == in_tables
    found = self_test(image.path)
    if name == "record: not filled":
        assert found is None
    elif name.startswith("attack") or name == "file: entry":
        assert found == ()
    elif name.startswith(("record", "file")):
        assert found == ("the record of the self-test",)
    else:
        part = "weights" if name.startswith("weights") else "code" if name[:6] in {"code: ", "vector"} else "constants"
        assert found == (part,)


def test_a_good_firmware_passes(built: Built) -> None:
    size = sum(len(each.data) for each in built.image.segments)
    expected = State.EQUAL, f"{size:,} B in 2 segments, with all constants"
    assert compare_images(built.image, read_image(built.image.path)) == expected
    assert compare_tables(built.image, emit(DENSE, built.job))[0] is State.EQUAL
    assert self_test(built.image.path) == ()
    data = built.image.path.read_bytes()
    assert seal.seal(data) == data


def test_every_byte_that_is_loaded_is_covered(built: Built) -> None:
    data = built.image.path.read_bytes()
    at = seal.record_at(data)
    for segment in built.image.segments:
        start = data.index(segment.data)
        for place in range(start, start + len(segment.data), 97):
            if not at <= place < at + seal.RECORD_BYTES:
                assert seal.damaged(data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]), hex(place)


def test_a_model_of_the_same_name_with_other_weights_is_another_one(built: Built, tmp_path: Path) -> None:
    other = dense(seed=2)
    job = replace(built.job, out=tmp_path / "other")
    artifact = emit(other, job)
    _, image = make_firmware(artifact, job)
    tables = compare_tables(image, emit(DENSE, built.job))
    assert tables[0] is State.DIFFERENT
    # with the digests of the expected model written over its own
    data = image.path.read_bytes()
    mine, its = (data_of(each) for each in (built.image, image))
    assert data.count(its) == 1
    image.path.write_bytes(seal.seal(data.replace(its, mine)))
    echoing = verify(read_image(image.path), [DENSE], built.job, code=False)
    assert all(getattr(echoing.models[0].found, name) == value for name, value in echoing.models[0].expected.items())
    assert echoing.models[0].different == ("tables",)
    assert echoing.state is State.DIFFERENT


def data_of(image: Image) -> bytes:
    section = image.section(".ferrule_identity")
    assert section is not None
    return image.read(section.load_address, 56)


@pytest.mark.parametrize("self_tested", [True, False])
def test_the_code_is_built_again(built: Built, tmp_path: Path, self_tested: bool) -> None:
    job = replace(built.job, self_test=self_tested, out=tmp_path / "fw")
    _, image = make_firmware(emit(DENSE, job), job)
    asked = replace(job, self_test=False, out=None)  # the firmware says whether it has a self-test
    good = verify(image, [DENSE], asked)
    assert good.state is State.EQUAL
    recorded = State.EQUAL if self_tested else State.NOT_RECORDED
    assert [check.state for check in good.checks] == [State.EQUAL, recorded]
    bad = tmp_path / "bad.elf"
    bad.write_bytes(in_section(".text", 0.5)(image.path.read_bytes(), image.path))
    assert verify(read_image(bad), [DENSE], asked).state is State.DIFFERENT
    unchecked = verify(read_image(bad), [DENSE], asked, code=False)
    assert unchecked.state is (State.DIFFERENT if self_tested else State.EQUAL)


def test_another_compiler_means_that_the_code_is_not_checked(built: Built, tmp_path: Path) -> None:
    data = built.image.path.read_bytes()
    at = data.index(b"Clang ")
    path = tmp_path / "other.elf"
    path.write_bytes(seal.seal(data[:at] + b"Clank " + data[at + 6 :]))
    result = verify(read_image(path), [DENSE], built.job)
    assert result.checks[0].state is State.NOT_CHECKED
    assert "it was built by Clank " in result.checks[0].text
    assert result.state is State.NOT_CHECKED


@pytest.mark.parametrize("needed", [True, False])
def test_what_was_not_checked_is_no_success(needed: bool) -> None:
    def whole(*states: State) -> State:
        checks = tuple(Check(name="", state=each) for each in states)
        return FirmwareVerification(models=(), checks=checks, needed=needed).state

    assert whole(State.EQUAL, State.NOT_RECORDED) is State.EQUAL
    assert whole(State.EQUAL, State.NOT_CHECKED) is (State.NOT_CHECKED if needed else State.EQUAL)
    assert whole(State.NOT_CHECKED, State.DIFFERENT) is State.DIFFERENT


def test_edited_files_are_taken_from_the_project(built: Built, tmp_path: Path) -> None:
    job = replace(built.job, out=tmp_path / "fw")
    project = write_project(emit(DENSE, job), job)
    main = project.folder / "main.c"
    edited = "volatile int mine;\nint main(void)\n{\n    mine = 1;"
    main.write_text(main.read_text().replace("int main(void)\n{", edited))
    image = build_project(project)
    assert verify(image, [DENSE], built.job).checks[0].state is State.DIFFERENT
    assert verify(image, [DENSE], built.job, project=project.folder).state is State.EQUAL


def test_the_script_needs_nothing_but_python(built: Built, tmp_path: Path) -> None:
    folder = Path(str(built.job.out))
    path = tmp_path / "fw.elf"
    path.write_bytes(RECORDED["record: not filled"](built.image.path.read_bytes(), built.image.path))
    assert seal.damaged(path.read_bytes()) is None
    script = folder / "seal.py"
    done = ran([sys.executable, "-I", "-S", script, path])
    assert (done.returncode, done.stderr) == (0, "")
    assert path.read_bytes() == built.image.path.read_bytes()
    for text in (b"", b"\x7fELF", path.read_bytes()[:60], path.read_bytes()[:3_000]):
        path.write_bytes(text)
        done = ran([sys.executable, "-I", "-S", script, path])
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert path.read_bytes() == text


@pytest.mark.parametrize(
    ("platform", "reason"),
    [
        ("zephyr", "Zephyr's build links it, makes zephyr.hex and zephyr.bin of the same link"),
        ("cmsis", "the linker script, the start-up and the converted files are those of your device's pack"),
    ],
)
def test_a_platform_that_others_link_says_why_it_has_none(platform: str, reason: str, tmp_path: Path) -> None:
    job = Job(board="mps2-an386", platform=platform, self_test=True, out=tmp_path / "nowhere")
    with pytest.raises(FerruleError, match=reason) as caught:
        write_project(emit(DENSE, job), job)
    assert "bare-metal" in str(caught.value.hint)
    assert "generate a library with it" in str(caught.value.hint)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.emu
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("weights: lowest bit of the first byte", "its weights"),
        ("constants: last byte", "its constants"),
        ("code: last byte", "its code"),
        ("record: a CRC", "the record of the self-test"),
    ],
)
def test_the_board_says_which_part_is_damaged(built: Built, tmp_path: Path, name: str, part: str) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    image = built.damaged(EVERY[name], tmp_path / "bad.elf")
    firmware = running.adopt(DENSE, image.path, built.job, engine="unicorn")
    with pytest.raises(FerruleError, match=f"found at its start that {part} in memory"):
        firmware.run()


@pytest.mark.emu
@pytest.mark.parametrize(("name", "said"), [(None, "equal"), ("record: not filled", "not_recorded")])
def test_the_report_has_the_result_of_the_self_test(built: Built, tmp_path: Path, name: str | None, said: str) -> None:
    require_module("unicorn", "pip install 'ferrule[run]'")
    image = built.image if name is None else built.damaged(EVERY[name], tmp_path / "bad.elf")
    report = running.adopt(DENSE, image.path, built.job, engine="unicorn").run()
    assert report.document.self_test == said
    assert report.verdict is Verdict.EXACT


@pytest.mark.emu
def test_cmake_seals_it_too(built: Built, arm_gcc: str, tmp_path: Path) -> None:
    """The firmware of another build says that it is good, and which part of it was damaged after the link."""
    require_module("unicorn", "pip install 'ferrule[run]'")
    cmake = require_program("cmake", "apt-get install cmake")
    job = replace(built.job, toolchain="arm-none-eabi-gcc", out=tmp_path / "it's a project")
    folder = write_project(emit(DENSE, job), job).folder
    for argv in ([cmake, "-S", ".", "-B", "cmake", "--toolchain", "toolchain.cmake"], [cmake, "--build", "cmake"]):
        done = ran(argv, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    made = Built(job=job, image=read_image(folder / "cmake" / "firmware.elf"))
    assert self_test(made.image.path) == ()
    report = running.adopt(DENSE, made.image.path, job, engine="unicorn").run()
    assert (report.document.self_test, report.verdict) == ("equal", Verdict.EXACT)
    for name, part in (("weights: lowest bit of the first byte", "weights"), ("code: in the middle", "code")):
        image = made.damaged(EVERY[name], tmp_path / "bad.elf")
        with pytest.raises(FerruleError, match=f"found at its start that its {part} in memory"):
            running.adopt(DENSE, image.path, job, engine="unicorn").run()
