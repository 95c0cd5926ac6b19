# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a project: its contributions with licences and digests, as CycloneDX 1.6 in JSON."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from ferrule._version import VERSION
from ferrule.backends.contribution import Contribution
from ferrule.codegen import Artifact, Program
from ferrule.codegen.identity import Identity
from ferrule.firmware.manifest import Files
from ferrule.firmware.platforms.platform import LIBRARY_FOLDER
from ferrule.resources import root

SBOM_NAME = "sbom.cdx.json"
_FIRMWARE, _MODEL, _INPUTS, _GENERATED, _STARTERS = "firmware", "model", "inputs", "generated", "starters"
"""References of the components that are no contributions; their names have a folder in front."""
_UNKNOWN = "NOASSERTION"
_FERRULE_URL = f"pkg:pypi/ferrule@{VERSION}"
"""The package URL (purl, ECMA-427) of this release, of which the shipped contributions are parts."""
_FERRULE = {"type": "application", "name": "ferrule", "version": VERSION, "purl": _FERRULE_URL}

Entry = dict[str, object]
"""An object of the bill's JSON."""


_VERSION = re.compile(r"\d+(\.\d+)+")


def compiler_component(name: str, said: str) -> Entry:
    """Return the compiler that a project's build files call; `said` is its version's text, "" if it is absent."""
    found: Entry = {"type": "application", "name": name}
    numbers = _VERSION.search(re.sub(r"\(.*?\)", "", said))
    if numbers is None:
        return found
    package = "pypi/ziglang" if name == "zig" else f"generic/{name}"
    return found | {"version": numbers[0], "description": said, "purl": f"pkg:{package}@{numbers[0]}"}


def sbom(
    program: Program,
    identities: Sequence[Identity],
    contributions: tuple[Contribution, ...],
    generated: Files,
    starters: Files,
    read: Mapping[str, str],
    compiler: Entry | None,
) -> bytes:
    """Return the bill of materials of a project with these identities, contributions, generated and starter files.

    `read` has the digests of the files that were read for it, by path: models with the files beside them, boards,
    backends' folders. The bill has their names without folders, which differ between machines. `compiler` is the one
    that the project's build files call; None if the platform's tools choose it. The bill has no time stamp, and its
    serial number follows from its contents, so that equal projects have equal bills.
    """
    parts = [_contribution(each) for each in contributions]
    models = [
        _model(artifact, identity, _MODEL if program.single else f"{_MODEL}/{artifact.symbol}")
        for artifact, identity in zip(program.artifacts, identities, strict=True)
    ]
    references = [str(model["bom-ref"]) for model in models]
    own = {name: data for name, data in generated.items() if not name.startswith(f"{LIBRARY_FOLDER}/")}
    edited = [_generated(starters) | {"bom-ref": _STARTERS, "name": "files to edit, as generated"}] if starters else []
    own_parts = [_GENERATED, *([_STARTERS] if starters else [])]
    body: Entry = {
        "version": 1,
        "metadata": {
            "tools": {"components": [_FERRULE, *([] if compiler is None else [compiler])]},
            "component": _firmware(program, identities),
        },
        "components": [*models, *_inputs(read), _generated(own), *edited, *parts],
        "dependencies": [
            {"ref": _FIRMWARE, "dependsOn": [*references, *own_parts, *(str(part["bom-ref"]) for part in parts)]},
            {"ref": _GENERATED, "dependsOn": [*references, *([_INPUTS] if read else [])]},
        ],
    }
    serial = uuid.UUID(bytes=hashlib.sha256(json.dumps(body).encode()).digest()[:16], version=4)
    head = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
    }
    return json.dumps(head | body, indent=2).encode() + b"\n"


def _firmware(program: Program, identities: Sequence[Identity]) -> Entry:
    first = identities[0]
    own = {"model": first.model, "plan": first.plan} if program.single else {}
    facts = {**own, "sources": first.sources, "platform": first.platform, "board": first.board}
    return {
        "type": "firmware",
        "bom-ref": _FIRMWARE,
        "name": program.symbol,
        "properties": [{"name": f"ferrule:{name}", "value": value} for name, value in facts.items()],
    }


def _model(artifact: Artifact, identity: Identity, reference: str) -> Entry:
    return {
        "type": "machine-learning-model",
        "bom-ref": reference,
        "name": artifact.graph.name or artifact.symbol,
        "properties": [{"name": "ferrule:model", "value": identity.model}],
    }


def _inputs(read: Mapping[str, str]) -> list[Entry]:
    named = sorted({(Path(path).name, digest) for path, digest in read.items()})
    components = [_file(name, digest) for name, digest in named]
    described: Entry = {
        "type": "data",
        "bom-ref": _INPUTS,
        "name": "files that were read",
        "components": components,
    }
    return [described] if named else []


def _generated(files: Files) -> Entry:
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return {
        "type": "library",
        "bom-ref": _GENERATED,
        "name": "generated files",
        "supplier": {"name": "ferrule"},
        "components": _files(hashes),
    }


def _contribution(part: Contribution) -> Entry:
    hashes = part.hashes
    digest = part.digest_by(hashes)
    found: Entry = {
        "type": "library",
        "bom-ref": f"{LIBRARY_FOLDER}/{part.name}@{digest[:16]}",
        "name": part.name,
        "properties": [
            {"name": "ferrule:digest", "value": digest},
            {"name": "ferrule:warnings", "value": str(part.warnings)},
        ],
        "components": _files(hashes),
    }
    own = (Path(__file__).parents[1], *(root() / name for name in ("include", "platforms", "src_c")))
    shipped = any(part.folder.resolve().is_relative_to(folder) for folder in own)
    found["purl"] = f"{_FERRULE_URL}#{part.name}" if shipped else f"pkg:generic/{quote(part.name)}@{digest[:16]}"
    if part.licence != _UNKNOWN:  # CycloneDX states an unknown licence by leaving it out
        found["licenses"] = [{"expression": part.licence}]
    return found


def _files(hashes: Mapping[str, str]) -> list[Entry]:
    return [_file(name, value) for name, value in sorted(hashes.items())]


def _file(name: str, digest: str) -> Entry:
    return {"type": "file", "name": name, "hashes": [{"alg": "SHA-256", "content": digest}]}
