# SPDX-License-Identifier: Apache-2.0
"""Preferences, fallback per layer, hints, devices, all-or-nothing assignment, and the messages about it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from optimizer_mocks import backend, by_name, line, registry, takes, takes_all, takes_names

from ferrule.backends import Backend, Device
from ferrule.backends.capability import ALL_OR_NOTHING
from ferrule.backends.device import BackendId
from ferrule.backends.target import Face
from ferrule.errors import FerruleError, ModelError, UnsupportedError
from ferrule.graph import Graph, LayerType
from ferrule.optimizer import Assignment, OptimizerOptions, explain, optimize

A, B = backend("A"), backend("B")
PLAIN = OptimizerOptions(simplify=False)
RELUS = backend("Relus", takes(LayerType.RELU))
WHOLE = {ALL_OR_NOTHING: True}


def owners(
    graph: Graph, preferences: list[str], *backends: type[Backend], options: OptimizerOptions = PLAIN
) -> dict[str, str]:
    result = optimize(graph, preferences, registry(*backends), options)
    return {name: given.backend for name, given in result.assignment.items() if not name.startswith("[")}


def test_each_layer_goes_to_the_first_backend_that_takes_it() -> None:
    graph = line("a", "tanh", "b")
    assert owners(graph, ["Relus", "B"], RELUS, B) == {"a": "Relus", "tanh": "B", "b": "Relus"}
    assert owners(graph, ["B", "Relus"], RELUS, B) == {"a": "B", "tanh": "B", "b": "B"}


def test_a_refusal_is_told_in_arm_nns_words() -> None:
    result = optimize(line("a", "tanh"), ["Relus", "B"], registry(RELUS, B), PLAIN)
    assert result.messages == (
        "layer 'tanh': Layer of type TANH is not supported on requested backend Relus for input data type float32 "
        "and output data type float32 (reason: TANH is not for me), falling back to the next backend.",
    )
    assert result.refusals == {("tanh", "Relus"): "TANH is not for me"}


def test_a_layer_that_nobody_takes_has_everybodys_reason() -> None:
    other = backend("Other", takes(LayerType.ADD))
    with pytest.raises(UnsupportedError) as error:
        optimize(line("a", "tanh", "b"), ["Relus", "Other"], registry(RELUS, other), PLAIN)
    assert str(error.value) == (
        "layer 'tanh' (TANH) is not supported on any preferred backend [Relus Other]; "
        "Relus: TANH is not for me; Other: TANH is not for me"
    )


@pytest.mark.parametrize(
    ("preferences", "message"),
    [
        ([], "no backend is given, expected a list of at least one"),
        (["Relu"], "there is no backend 'Relu'"),
        (["A", "A"], r"backend A is listed twice in the preferences \['A', 'A'\]"),
        ("A", "no backend is given, expected a list"),
    ],
)
def test_preferences_are_checked(preferences: list[str], message: str) -> None:
    with pytest.raises(FerruleError, match=message):
        optimize(line("a"), preferences, registry(A, RELUS), PLAIN)


def test_an_unknown_backend_comes_with_near_names() -> None:
    with pytest.raises(FerruleError) as error:
        optimize(line("a"), ["Relu"], registry(A, RELUS), PLAIN)
    assert error.value.hint == "did you mean Relus?"


def test_backends_that_cannot_be_used_here_are_left_out_and_named() -> None:
    def broken() -> Backend:
        raise OSError("no driver")

    source = registry(A)
    source.register("Broken", broken, origin="test")
    result = optimize(line("a"), ["Broken", "A"], source, PLAIN)
    assert result.backends == ("A",)
    assert "backend Broken is left out" in result.messages[0]
    assert "no driver" in result.messages[0]
    with pytest.raises(FerruleError, match=r"none of the preferred backends can be used here\. Broken: .*no driver"):
        optimize(line("a"), ["Broken"], source, PLAIN)


def test_a_backend_needs_the_face_that_is_asked_for() -> None:
    with pytest.raises(FerruleError, match="A: it has no firmware face"):
        optimize(line("a"), ["A"], registry(A), OptimizerOptions(face=Face.FIRMWARE))


def test_a_network_that_is_not_valid_is_refused_first() -> None:
    graph = line("a")
    graph.set_outputs([])
    with pytest.raises(ModelError, match="network 'line' has no outputs"):
        optimize(graph, ["A"], registry(A), PLAIN)


def test_a_hint_is_tried_first_though_it_is_not_preferred() -> None:
    options = OptimizerOptions(simplify=False, hints={"b": "B", "tanh": "Relus"})
    assert owners(line("a", "b", "tanh"), ["A"], A, B, RELUS, options=options) == {"a": "A", "b": "B", "tanh": "A"}


def test_a_hint_for_a_backend_that_is_not_there_is_ignored_with_a_message() -> None:
    result = optimize(line("a"), ["A"], registry(A), OptimizerOptions(hints={"a": "Gone"}))
    assert result.messages == ("the hint 'Gone' for layer 'a' is ignored: there is no backend 'Gone'",)


def test_a_hint_for_a_layer_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FerruleError, match="there is no layer 'aa' in 'line'"):
        optimize(line("a"), ["A"], registry(A), OptimizerOptions(hints={"aa": "A"}))


class TestDevices:
    TWO = (Device(name="npu0", backend=BackendId("A")), Device(name="npu1", backend=BackendId("A")))

    def test_a_backend_without_one_has_one_of_its_name(self) -> None:
        result = optimize(line("a"), ["A"], registry(A))
        assert result.assignment == {"a": Assignment(backend=BackendId("A"), device="A")}
        assert [device.name for device in result.devices] == ["A"]

    def test_the_first_is_taken_unless_a_hint_names_another(self) -> None:
        options = OptimizerOptions(simplify=False, devices=self.TWO, hints={"b": "A/npu1", "c": "A"})
        result = optimize(line("a", "b", "c"), ["A"], registry(A), options)
        assert {name: given.device for name, given in result.assignment.items()} == {
            "a": "npu0",
            "b": "npu1",
            "c": "npu0",
        }
        assert [device.name for device in result.devices] == ["npu0", "npu1"]

    def test_a_pool_is_one_of_firmware(self) -> None:
        pool = tuple(replace(device, pool=True) for device in self.TWO)
        result = optimize(line("a"), ["A"], registry(A), OptimizerOptions(devices=pool))
        assert [device.name for device in result.devices] == ["npu0"]

    def test_subgraphs_do_not_span_devices(self) -> None:
        compiler = backend("A", optimise=by_name)
        options = OptimizerOptions(simplify=False, devices=self.TWO, hints={"b": "A/npu1"})
        result = optimize(line("a", "b", "c"), ["A"], registry(compiler), options)
        assert [(layer.name, result.assignment[layer.name].device) for layer in result.graph.layers] == [
            ("compiled a", "npu0"),
            ("compiled b", "npu1"),
            ("compiled c", "npu0"),
        ]

    @pytest.mark.parametrize(
        ("devices", "hints", "message"),
        [
            ((Device(name="d", backend=BackendId("C")),), {}, "no backend 'C' of which device 'd' is an instance"),
            ((Device(name="d", backend=BackendId("A")),) * 2, {}, "two devices have the name 'd'"),
            ((Device(name="B", backend=BackendId("A")),), {}, "has the name of another backend"),
            ((), {"a": "A/npu7"}, "there is no device 'npu7' of backend A"),
        ],
    )
    def test_they_are_checked(self, devices: tuple[Device, ...], hints: dict[str, str], message: str) -> None:
        with pytest.raises(FerruleError, match=message):
            optimize(line("a"), ["A"], registry(A, B), OptimizerOptions(devices=devices, hints=hints))


class TestAllOrNothing:
    def test_one_refusal_takes_everything_away(self) -> None:
        whole = backend("Whole", takes(LayerType.RELU), capabilities=WHOLE)
        graph = line("a", "tanh", "b")
        assert set(owners(graph, ["Whole", "B"], whole, B).values()) == {"B"}
        result = optimize(graph, ["Whole", "B"], registry(whole, B), PLAIN)
        assert result.messages == (
            "backend Whole is left out: it takes whole networks only, and refuses layer 'tanh': TANH is not for me",
        )

    def test_what_it_takes_wholly_it_gets(self) -> None:
        whole = backend("Whole", takes_all, capabilities=WHOLE)
        assert set(owners(line("a", "tanh"), ["Whole", "B"], whole, B).values()) == {"Whole"}

    def test_it_does_not_get_the_rest_of_another(self) -> None:
        whole = backend("Whole", takes_all, capabilities=WHOLE)
        graph = line("a", "tanh", "b")
        assert set(owners(graph, ["Relus", "Whole", "B"], RELUS, whole, B).values()) == {"Relus", "B"}
        result = optimize(graph, ["Relus", "Whole", "B"], registry(RELUS, whole, B), PLAIN)
        reason = "backend Whole is left out: it takes whole networks only, and layer 'a' goes to Relus"
        assert reason in result.messages

    def test_one_failure_takes_everything_away(self) -> None:
        whole = backend("Whole", takes_all, capabilities=WHOLE, optimise=by_name)
        assert set(owners(line("a", "unoptimizable"), ["Whole", "B"], whole, B).values()) == {"B"}

    def test_nobody_is_left(self) -> None:
        whole = backend("Whole", takes(LayerType.RELU), capabilities=WHOLE)
        with pytest.raises(FerruleError, match=r"no backend is left for 'line'.*refuses layer 'tanh'"):
            optimize(line("a", "tanh"), ["Whole"], registry(whole), PLAIN)


def test_explain_asks_everybody_about_every_layer() -> None:
    only_b = backend("OnlyB", takes_names({"b"}))
    rows = explain(line("a", "b", "tanh"), [only_b(), RELUS()], OptimizerOptions())
    assert [(row.layer, row.type, row.refusals) for row in rows] == [
        ("a", LayerType.RELU, (("OnlyB", "a is not for me"),)),
        ("b", LayerType.RELU, ()),
        ("tanh", LayerType.TANH, (("OnlyB", "tanh is not for me"), ("Relus", "TANH is not for me"))),
    ]


def test_explain_says_that_whole_networks_are_refused_wholly() -> None:
    whole = backend("Whole", takes(LayerType.RELU), capabilities=WHOLE)
    rows = explain(line("a", "tanh"), [whole()], OptimizerOptions())
    assert [row.refusals[0][1] for row in rows] == [
        "it takes whole networks only, and refuses layer 'tanh'",
        "TANH is not for me",
    ]
