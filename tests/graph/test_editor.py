# SPDX-License-Identifier: Apache-2.0
"""The graph editor: random edits have the same effect as on a plain list of layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from chains import build, chain, info
from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.errors import ModelError
from ferrule.graph import Descriptor, Graph, GraphEditor, Layer, LayerType, SubgraphView, Tensor, renamed


class Naive:
    """The layers as a list, which each query searches."""

    def __init__(self, graph: Graph) -> None:
        self.layers = list(graph.layers)
        self.names = {tensor.info.name for tensor in graph.tensors} | {layer.name for layer in graph.layers}

    def consumers(self, tensor: str) -> list[str]:
        return sorted(layer.name for layer in self.layers if tensor in layer.inputs)

    def producer(self, tensor: str) -> str | None:
        return next((layer.name for layer in self.layers if tensor in layer.outputs), None)

    def fresh(self, wanted: str) -> str:
        number = 1
        while (name := wanted if number == 1 else f"{wanted}_{number}") in self.names:
            number += 1
        self.names.add(name)
        return name

    def position(self, name: str) -> int:
        return [layer.name for layer in self.layers].index(name)

    def rename(self, old: str, new: str) -> None:
        def changed(names: tuple[str | None, ...]) -> tuple[str | None, ...]:
            return tuple(new if name == old else name for name in names)

        self.layers = [
            replace(one, inputs=changed(one.inputs), outputs=changed(one.outputs))  # type: ignore[arg-type]
            for one in self.layers
        ]


def copy_of(name: str, source: str) -> Layer:
    return Layer(name, LayerType.ADD, Descriptor(), inputs=(source, source), outputs=(name,))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    known = ["x"]
    layers = []
    for number in range(draw(st.integers(1, 8))):
        layers.append((draw(st.lists(st.sampled_from(known), min_size=1, max_size=3)), [(f"t{number}", 4)]))
        known.append(f"t{number}")
    return build([("x", 4)], layers, draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True)))


def edit(data: st.DataObject, editor: GraphEditor, naive: Naive) -> None:
    """Make the same random change in both."""
    action = data.draw(st.sampled_from(["before", "behind", "end", "remove", "rename", "several", "redirect"]))
    names = [layer.name for layer in naive.layers]
    if action in {"before", "behind", "end"} or not names:
        name = naive.fresh("copy")
        assert editor.fresh("copy") == name
        editor.set_tensor(Tensor(info(name, 4)))
        layer = copy_of(name, "x")
        if action == "end" or not names:
            editor.add_layer(layer)
            naive.layers.append(layer)
            return
        anchor = data.draw(st.sampled_from(names))
        editor.add_layer(layer, **{action: anchor})
        naive.layers.insert(naive.position(anchor) + (action == "behind"), layer)
    elif action == "remove":
        name = data.draw(st.sampled_from(names))
        editor.remove_layer(name)
        naive.layers = [layer for layer in naive.layers if layer.name != name]
    elif action == "several":
        gone = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        name = naive.fresh("several")
        assert editor.fresh("several") == name
        editor.set_tensor(Tensor(info(name, 4)))
        editor.replace_layers(gone, [copy_of(name, "x")])
        naive.layers[naive.position(gone[0])] = copy_of(name, "x")
        naive.layers = [layer for layer in naive.layers if layer.name not in gone]
    elif action == "redirect":
        reader = data.draw(st.sampled_from(names))
        old = data.draw(st.sampled_from(editor.layer(reader).present_inputs))
        editor.redirect({old: "x"}, [reader])
        place = naive.position(reader)
        inputs = tuple("x" if name == old else name for name in naive.layers[place].inputs)
        naive.layers[place] = replace(naive.layers[place], inputs=inputs)
    else:
        old = data.draw(st.sampled_from([name for layer in naive.layers for name in layer.outputs]))
        new = naive.fresh("renamed")
        assert editor.fresh("renamed") == new
        editor.set_tensor(renamed(editor.tensor(old), new))
        editor.rename({old: new})
        naive.rename(old, new)


@given(graphs(), st.data())
@settings(max_examples=150, deadline=None)
def test_edits_give_what_a_plain_list_gives(graph: Graph, data: st.DataObject) -> None:
    editor, naive = GraphEditor(graph), Naive(graph)
    for _ in range(data.draw(st.integers(0, 8))):
        edit(data, editor, naive)
        assert list(editor.layers()) == naive.layers
    tensors = {name for layer in naive.layers for name in (*layer.present_inputs, *layer.outputs)}
    for tensor in tensors | {"x"}:
        assert sorted(layer.name for layer in editor.consumers(tensor)) == naive.consumers(tensor)
        producer = editor.producer(tensor)
        assert (producer.name if producer else None) == naive.producer(tensor)
        reads = [name for layer in naive.layers for name in layer.inputs if name == tensor]
        only = editor.only_consumer(tensor)
        assert (only is not None) == (len(reads) == 1 and not editor.is_output(tensor))


@given(graphs())
@settings(max_examples=50, deadline=None)
def test_a_graph_without_edits_stays_as_it_is(graph: Graph) -> None:
    finished = GraphEditor(graph).finish()
    assert (finished.layers, finished.inputs, finished.outputs) == (graph.layers, graph.inputs, graph.outputs)
    assert finished.tensors == graph.tensors


def test_a_finished_graph_cannot_be_changed() -> None:
    graph = GraphEditor(chain([4, 4])).finish()
    with pytest.raises(ModelError, match="is finished, expected changes through a GraphEditor"):
        graph.add_input(info("new", 4))
    with pytest.raises(ModelError, match="is finished"):
        graph.add_layer(copy_of("new", "t0"), [info("new", 4)])
    with pytest.raises(ModelError, match="is finished"):
        graph.set_outputs(["t0"])


def test_finish_checks_the_whole() -> None:
    editor = GraphEditor(chain([4, 4, 4]))
    editor.remove_layer("l0")
    with pytest.raises(ModelError, match="layer 'l1' reads tensor 't1', which nothing before it writes"):
        editor.finish()
    twice = GraphEditor(chain([4, 4]))
    twice.add_layer(replace(copy_of("new", "t0"), outputs=("t1",)))
    with pytest.raises(ModelError, match="has a tensor 't1' already"):
        twice.finish()
    cycle = GraphEditor(chain([4, 4, 4]))
    cycle.redirect({"t0": "t2"})
    with pytest.raises(ModelError, match="form a cycle"):
        cycle.finish()


def test_unknown_and_taken_names_are_refused() -> None:
    editor = GraphEditor(chain([4, 4]))
    with pytest.raises(ModelError, match="has no layer 'nothing'"):
        editor.remove_layer("nothing")
    with pytest.raises(ModelError, match="has no tensor 'nothing'"):
        editor.info("nothing")
    with pytest.raises(ModelError, match="has a layer 'l0' already"):
        editor.add_layer(copy_of("l0", "t0"))


def test_an_added_tensor_gets_a_name_that_is_free() -> None:
    graph = chain([4, 4])
    editor = GraphEditor(graph)
    assert editor.add_tensor(Tensor(info("t0", 8))) == "t0_2"
    assert editor.info("t0_2") == info("t0_2", 8)
    assert editor.info("t0") == graph.info("t0")
    assert editor.add_tensor(Tensor(info("new", 8))) == "new"


def test_a_layer_is_moved_behind_what_it_reads() -> None:
    editor = GraphEditor(chain([4, 4, 4]))
    editor.set_tensor(Tensor(info("late", 4)))
    editor.add_layer(copy_of("late", "t2"), before="l0")
    assert [layer.name for layer in editor.finish().layers] == ["l0", "l1", "late"]


@pytest.mark.parametrize(("outputs", "done", "left"), [(["t2"], True, "t2"), (["t1", "t2"], False, "t2")])
def test_a_bypassed_output_keeps_its_name(outputs: list[str], done: bool, left: str) -> None:
    graph = build([("x", 4)], [(["x"], [("t1", 4)]), (["t1"], [("t2", 4)])], outputs)
    editor = GraphEditor(graph)
    assert editor.bypass(editor.layer("l1"), "t1") is done
    finished = editor.finish()
    assert [one.name for one in finished.outputs] == outputs
    assert finished.layers[-1].outputs == (left,)


def test_consumers_and_positions_of_a_graph() -> None:
    graph = build([("x", 4)], [(["x", "x"], [("a", 4)]), (["x", "a"], [("b", 4)])], ["b"])
    assert [layer.name for layer in graph.consumers("x")] == ["l0", "l1"]
    assert graph.consumers("b") == ()
    assert (graph.position("l0"), graph.position("l1")) == (0, 1)
    with pytest.raises(ModelError, match="has no layer 'l2'"):
        graph.position("l2")
    assert graph.in_order(["b", "x", "b"]) == ["x", "b"]
    assert SubgraphView.of(graph, ["l0", "l1"]).inputs == ("x",)


def test_the_last_output_cannot_become_a_state() -> None:
    graph = build([("x", 4), ("old", 4)], [(["x", "old"], [("total", 4)])], ["total", "x"])
    graph.keep_output("total", "old")
    with pytest.raises(ModelError, match="has no output besides 'x'"):
        graph.keep_output("x", "x")


def test_a_graph_that_is_not_edited_is_the_result() -> None:
    given = chain([4, 4, 4])
    given.freeze()
    assembled = GraphEditor(given).finish()
    assert assembled is not given, "it may have constants that nothing reads, and in another order"
    assert GraphEditor(assembled).finish() is assembled


def test_each_edit_makes_another_graph() -> None:
    assembled = GraphEditor(chain([4, 4, 4])).finish()
    first, last = assembled.layers[0], assembled.layers[-1]

    def finished(edit: Callable[[GraphEditor], object]) -> Graph:
        editor = GraphEditor(assembled)
        edit(editor)
        return editor.finish()

    assert finished(lambda editor: editor.replace_layer(replace(last, inputs=first.inputs))).layers[-1] != last
    assert finished(lambda editor: editor.set_tensor(Tensor(info(last.outputs[0], 9)))).outputs[0].shape == (9,)
    assert finished(lambda editor: editor.fresh("other")) is assembled
