# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a project, checked against the schema of CycloneDX 1.6 and against the project."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from needs import require_module
from small_networks import dense

import ferrule
from ferrule.backends.contribution import Contribution, Warnings
from ferrule.firmware import Job, emit, write_project
from ferrule.firmware.manifest import MANIFEST_NAME
from ferrule.firmware.sbom import SBOM_NAME
from ferrule.firmware.toolchain import GccToolchain
from ferrule.formats import to_tflite

JOB = Job(toolchain="arm-none-eabi-gcc")


def write(folder: Path, platform: str = "bare-metal") -> Any:  # noqa: ANN401 JSON
    job = replace(JOB, platform=platform, out=folder)
    write_project(emit(dense(), job), job)
    return json.loads((folder / SBOM_NAME).read_bytes())


@pytest.mark.parametrize("platform", ["bare-metal", "cmsis", "zephyr"])
def test_it_lists_every_file(platform: str, tmp_path: Path) -> None:
    """Those to edit, too, such as main.c and the build files; the bill and the manifest cannot list themselves."""
    bill = write(tmp_path / "project", platform)
    listed = {
        (f"lib/{part['name']}/" if part["bom-ref"].startswith("lib/") else "") + each["name"]: each["hashes"]
        for part in bill["components"]
        if part["bom-ref"] != "inputs"
        for each in part.get("components", ())
    }
    files = [path.relative_to(tmp_path / "project") for path in (tmp_path / "project").rglob("*.*") if path.is_file()]
    present = {path.as_posix() for path in files if path.parts[0] != "lib" or path.suffix in {".c", ".h"}}
    assert present - set(listed) == {SBOM_NAME, MANIFEST_NAME}
    build = {"bare-metal": "Makefile", "cmsis": "main.c", "zephyr": "CMakeLists.txt"}[platform]
    assert {build, "model/ferrule_dense.c", "model/ferrule_dense_identity.c"} <= set(listed)
    for name, hashes in listed.items():
        data = (tmp_path / "project" / name).read_bytes()
        assert hashes == [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}], name
    shipped = [part for part in bill["components"] if "licenses" in part]
    assert {part["licenses"][0]["expression"] for part in shipped} == {"Apache-2.0"}
    assert len(shipped) == len(bill["components"]) - 3  # the model, generated files, files to edit


def test_it_names_packages_and_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205"
    monkeypatch.setattr(GccToolchain, "find", lambda _self: ("arm-none-eabi-gcc",))
    monkeypatch.setattr(GccToolchain, "version", lambda _self: said)
    bill = write(tmp_path / "one")
    ferrule, compiler = bill["metadata"]["tools"]["components"]
    assert ferrule["purl"] == f"pkg:pypi/ferrule@{ferrule['version']}"
    assert compiler == {
        "type": "application",
        "name": "arm-none-eabi-gcc",
        "version": "12.2.1",
        "description": said,
        "purl": "pkg:generic/arm-none-eabi-gcc@12.2.1",
    }
    parts = [part for part in bill["components"] if part["bom-ref"].startswith("lib/")]
    assert parts
    assert {part["purl"] for part in parts} == {f"{ferrule['purl']}#{part['name']}" for part in parts}
    monkeypatch.setattr(GccToolchain, "find", lambda _self: None)
    assert "version" not in write(tmp_path / "two")["metadata"]["tools"]["components"][1]
    assert len(write(tmp_path / "three", "zephyr")["metadata"]["tools"]["components"]) == 1


def test_it_is_the_same_for_the_same_project(tmp_path: Path) -> None:
    write(tmp_path / "one")
    write(tmp_path / "two")
    first = (tmp_path / "one" / SBOM_NAME).read_bytes()
    assert first == (tmp_path / "two" / SBOM_NAME).read_bytes()
    assert b"timestamp" not in first
    other = write(tmp_path / "three", "cmsis")
    assert other["serialNumber"] != json.loads(first)["serialNumber"]


def test_it_states_licences_as_expressions_or_not_at_all(tmp_path: Path) -> None:
    artifact = emit(dense(), JOB)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "x.c").write_text("int x;\n")
    theirs = [
        Contribution(name="theirs", folder=tmp_path / "theirs", sources=("x.c",), warnings=Warnings.THIRD_PARTY),
        Contribution(name="more", folder=tmp_path / "theirs", include_dirs=(".",), licence="MIT OR BSD-3-Clause"),
    ]
    job = replace(JOB, out=tmp_path / "project")
    write_project(replace(artifact, contributions=(*artifact.contributions, *theirs)), job)
    parts = {part["name"]: part for part in json.loads((tmp_path / "project" / SBOM_NAME).read_bytes())["components"]}
    assert "licenses" not in parts["theirs"]
    assert parts["more"]["licenses"] == [{"expression": "MIT OR BSD-3-Clause"}]
    assert {"name": "ferrule:warnings", "value": "third-party"} in parts["theirs"]["properties"]


def test_it_has_what_the_specification_demands(tmp_path: Path) -> None:
    """Uniqueness of references is a rule of the specification that its schema cannot express."""
    bill = write(tmp_path / "project")
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", bill["serialNumber"])
    references = [bill["metadata"]["component"]["bom-ref"], *(part["bom-ref"] for part in bill["components"])]
    assert len(set(references)) == len(references)
    (firmware, _) = bill["dependencies"]
    assert [firmware["ref"], *firmware["dependsOn"]] == references
    used = {each for item in bill["dependencies"] for each in (item["ref"], *item["dependsOn"])}
    assert used <= set(references)


def test_it_is_valid_by_the_schema(tmp_path: Path) -> None:
    require_module("cyclonedx", "pip install -e '.[dev]'")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    write(tmp_path / "project")
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    text = (tmp_path / "project" / SBOM_NAME).read_text()
    assert validator.validate_str(text) is None
    assert validator.validate_str(text.replace('"firmware"', '"firmwares"', 1)) is not None


def test_it_lists_what_was_read(tmp_path: Path) -> None:
    """The model and the board, by name and digest; a build of the project adds nothing, and the place is not in it."""
    bills = []
    for place in ("one", "two"):
        model = tmp_path / place / "dense.tflite"
        model.parent.mkdir()
        model.write_bytes(to_tflite(dense()))
        given = model if place == "one" else ferrule.load(model)
        ferrule.generate(given, out=tmp_path / place / "project", toolchain="arm-none-eabi-gcc")
        bills.append((tmp_path / place / "project" / SBOM_NAME).read_bytes())
    assert bills[0] == bills[1]
    (part,) = (part for part in json.loads(bills[0])["components"] if part["bom-ref"] == "inputs")
    listed = {each["name"]: each["hashes"][0]["content"] for each in part["components"]}
    assert listed["dense.tflite"] == hashlib.sha256(to_tflite(dense())).hexdigest()
    assert {"board.toml", "mps2.repl"} <= listed.keys()
    assert not [name for name in listed if name.endswith((".h", ".c"))]
