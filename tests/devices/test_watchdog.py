# SPDX-License-Identifier: Apache-2.0
"""The watchdog's looks at calls, with times that the test states: which call is interrupted when, and how."""

from __future__ import annotations

import queue
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from ferrule.devices import watchdog
from ferrule.devices.watchdog import OverdueError, Watchdog


class Watched:
    """An object with a method that goes on when it is interrupted."""

    deadline_s = 2.0

    def __init__(self) -> None:
        self.noted: list[tuple[float, bool]] = []
        self.looks: list[float] = []
        self.interrupted = 0
        self.over = False
        self.ready: queue.SimpleQueue[None] = queue.SimpleQueue()

    def overdue(self, frame: FrameType, elapsed_s: float, *, again: bool) -> None:
        assert frame.f_code is Watched.call.__code__
        self.noted.append((elapsed_s, again))

    def call(self) -> None:
        while not self.over:
            try:
                self.ready.put(None)
                while not self.over:
                    time.sleep(0.001)
            except OverdueError:
                self.interrupted += 1

    def look(self, now: float) -> None:
        self.looks.append(now)


@pytest.fixture
def dog(monkeypatch: pytest.MonkeyPatch) -> Watchdog:
    """Return a watchdog whose thread does not wait between its looks."""
    monkeypatch.setattr(watchdog, "POLL_S", 0)
    made = Watchdog()
    made.entries.add(Watched.call.__code__)
    return made


@pytest.fixture
def calling() -> Iterator[Callable[[Watched], threading.Thread]]:
    """Return a function that begins a call in a thread; the call ends with the test."""
    begun: list[tuple[Watched, threading.Thread]] = []

    def begin(watched: Watched) -> threading.Thread:
        thread = threading.Thread(target=watched.call)
        begun.append((watched, thread))
        thread.start()
        watched.ready.get(timeout=60)
        return thread

    yield begin
    for watched, thread in begun:
        watched.over = True
        thread.join()


def test_a_call_is_interrupted_at_each_second_look_after_its_deadline(
    dog: Watchdog, calling: Callable[[Watched], threading.Thread]
) -> None:
    watched = Watched()
    calling(watched)
    for now in (10.0, 11.0, 12.0):  # the first look begins to count, and 2 s are not too long
        dog._look(now)
    assert watched.noted == []
    dog._look(12.5)
    watched.ready.get(timeout=60)
    assert (watched.noted, watched.interrupted) == ([(2.5, False)], 1)
    dog._look(13.0)  # it would end a wait of the main thread by a signal, and this is another one
    dog._look(13.5)
    watched.ready.get(timeout=60)
    assert watched.noted == [(2.5, False), (3.0, True), (3.5, True)]
    assert watched.interrupted == 2


def test_each_call_has_its_own_time(dog: Watchdog, calling: Callable[[Watched], threading.Thread]) -> None:
    watched = Watched()
    for now in (10.0, 20.0):
        thread = calling(watched)
        dog._look(now)
        dog._look(now + 1)
        watched.over = True
        thread.join()
        watched.over = False
    assert watched.noted == []


def test_a_tick_is_called_at_each_look_as_long_as_its_object_exists(
    dog: Watchdog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dog, "_start", lambda: None)
    kept, gone = Watched(), Watched()
    for each in (gone, kept):
        dog.every_look(each.look)
    dog._look(1.0)
    assert (kept.looks, gone.looks) == ([1.0], [1.0])
    del each, gone
    dog._look(2.0)
    assert kept.looks == [1.0, 2.0]


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("ticking", [False, True])
def test_the_thread_runs_while_an_object_is_watched_or_has_a_tick(
    dog: Watchdog, monkeypatch: pytest.MonkeyPatch, *, watched: bool, ticking: bool
) -> None:
    objects = [Watched()]
    looks = []

    def look(now: float) -> None:
        looks.append(now)
        if len(looks) == 3:
            objects.clear()

    monkeypatch.setattr(dog, "_look", look)
    if watched:
        dog._watched.add(objects[0])
    if ticking:
        dog._ticks.append(weakref.WeakMethod(objects[0].look))
    dog._thread = threading.current_thread()
    dog._run()
    assert len(looks) == (3 if watched or ticking else 0)
    assert dog._thread is None


def test_one_thread_looks_and_another_one_begins_if_it_ended(dog: Watchdog, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    monkeypatch.setattr(dog, "_run", end.wait)
    first, second = Watched(), Watched()
    dog.watch(first)
    begun = dog._thread
    assert begun is not None
    dog.watch(second)
    assert dog._thread is begun
    end.set()
    begun.join()
    dog.watch(second)
    assert dog._thread is not begun
    assert dog._thread is not None
    dog._thread.join()


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("ticking", [False, True])
def test_the_child_of_a_fork_begins_a_thread_if_there_is_something_to_look_at(
    dog: Watchdog, monkeypatch: pytest.MonkeyPatch, *, watched: bool, ticking: bool
) -> None:
    started: list[threading.Thread | None] = []
    monkeypatch.setattr(dog, "_start", lambda: started.append(dog._thread))
    each = Watched()
    if watched:
        dog._watched.add(each)
    if ticking:
        dog._ticks.append(weakref.WeakMethod(each.look))
    dog._thread, old = threading.current_thread(), dog.lock
    dog.forked()
    assert started == ([None] if watched or ticking else [])
    assert dog.lock is not old


def test_a_handler_of_sigint_raises_only_if_the_signal_is_the_watchdogs(dog: Watchdog) -> None:
    called: list[str] = []
    handle = dog.raising_handler(lambda: called.append("function"), handled=lambda: called.append("handled"))
    handle(signal.SIGINT, None)
    assert called == ["handled", "function"]
    dog._forced = True
    with pytest.raises(OverdueError):
        handle(signal.SIGINT, None)
    assert called == ["handled", "function", "handled"]
    handle(signal.SIGINT, None)
    assert called[3:] == ["handled", "function"]


@pytest.mark.parametrize(
    ("handler", "is_main", "sent", "forced"),
    [
        ("default", True, True, False),
        ("own", True, True, True),
        ("other", True, False, False),
        ("ignored", True, False, False),
        ("default", False, False, False),
        ("own", False, False, False),
    ],
)
def test_a_wait_of_the_main_thread_is_ended_if_the_handler_raises(
    dog: Watchdog, monkeypatch: pytest.MonkeyPatch, handler: str, *, is_main: bool, sent: bool, forced: bool
) -> None:
    handlers = {
        "default": signal.default_int_handler,
        "own": dog.raising_handler(lambda: None),
        "other": lambda number, frame: None,
        "ignored": signal.SIG_IGN,
    }
    kills: list[tuple[int, int]] = []
    monkeypatch.setattr(signal, "getsignal", lambda number: handlers[handler])
    monkeypatch.setattr(signal, "pthread_kill", lambda thread, number: kills.append((thread, number)))
    main = threading.main_thread().ident
    assert main is not None
    dog._force(main if is_main else main + 1)
    assert kills == ([(main, signal.SIGINT)] if sent else [])
    assert dog._forced is forced
