# SPDX-License-Identifier: Apache-2.0
"""What is wrong as SARIF 2.1.0 (OASIS), which code scanning of hosted repositories reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from ferrule._version import VERSION
from ferrule.rendering import shown
from ferrule.report.base import Case, Document, Outcome, Rule, Suite

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_MEANINGS = {
    Rule.DIFFERENT: "The outputs of the firmware differ from the numpy reference.",
    Rule.NOTHING_COMPARED: "Nothing was compared, so that there is no verdict.",
    Rule.DEVICE_CALLS: "The calls of devices are not those that the generator scheduled.",
    Rule.CRASH: "The firmware faulted or hung.",
    Rule.ERROR: "The command ended with an error.",
    Rule.REFUSED: "A part of the model cannot be used.",
    Rule.FAILED_RUN: "A run of a sweep ended with an error.",
    Rule.UNDEFINED_METRIC: "A metric is undefined for the given samples.",
    Rule.OVER_BUDGET: "A value is worse than its limit allows.",
    Rule.OVER_DEADLINE: "An inference takes longer than its deadline allows, the measured error counted against it.",
    Rule.UNPROVED_DEADLINE: "An inference keeps its deadline, but the error of its time was not measured.",
}


def sarif_text(documents: Sequence[Document]) -> str:
    """Return one run of the tool with a result for each thing that is wrong; a good document has none.

    Raises:
        FerruleError: a document has no verdict.
    """
    suites = [document.suite() for document in documents]
    results = [_result(suite, case) for suite in suites for case in suite.cases if case.rule is not None]
    distinct = {(each["ruleId"], each["partialFingerprints"]["ferrule/v1"]): each for each in reversed(results)}
    failed = any(document.kind == "failure" for document in documents)
    kind = suites[0].command if failed else documents[0].kind
    run = {
        "tool": {
            "driver": {
                "name": "Ferrule",
                "version": VERSION,
                "rules": [
                    {
                        "id": f"ferrule/{rule}",
                        "name": "".join(word.capitalize() for word in ("ferrule", *rule.split("-"))),
                        "shortDescription": {"text": text},
                    }
                    for rule, text in _MEANINGS.items()
                ],
            }
        },
        "automationDetails": {"id": f"ferrule/{kind}/"},
        "invocations": [{"executionSuccessful": not failed}],
        "columnKind": "unicodeCodePoints",
        "results": list(reversed(distinct.values())),
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(suite: Suite, case: Case) -> dict[str, Any]:
    assert case.rule is not None
    model, file = case.model or suite.model, case.file or suite.file
    location: dict[str, Any] = {}
    if file:
        relative = file.rpartition("/")[2] if file.startswith("/") else file  # of one elsewhere, its name
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(relative, safe="/", errors="replace"), "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 1},
        }
    name = case.layer or model or "command"
    qualified = "/".join(filter(None, [model, case.layer])) or "command"
    kind = "member" if case.layer else "module"
    location["logicalLocations"] = [{"name": shown(name), "fullyQualifiedName": shown(qualified), "kind": kind}]
    # what SARIF would read as a link or a placeholder is escaped (sections 3.11.5 and 3.11.6)
    unlinked = re.sub(r"\](?=\()", r"\\]", shown(f"{suite.name}: {case.name}: {case.text}"))
    stable = "\0".join([f"ferrule/{case.rule}", model, case.layer, case.where])
    digest = hashlib.sha256(stable.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "ruleId": f"ferrule/{case.rule}",
        "ruleIndex": list(_MEANINGS).index(case.rule),
        "level": "warning" if case.outcome is Outcome.SKIPPED else "error",
        "message": {"text": re.sub(r"\{(\d+)\}", r"{{\1}}", unlinked)},
        "locations": [location],
        "partialFingerprints": {"ferrule/v1": digest},
    }
