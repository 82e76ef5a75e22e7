"""Variants: when they are looked for, made, loaded and given up."""

import os

import pytest

from cutile import settings
from cutile.gpu import background
from cutile.gpu.variants import Variant


class World:
    """A disk, a compiler and a GPU; `said` has what they were asked, `later` the jobs of the background."""

    def __init__(self, monkeypatch, **fails):
        self.on_disk, self.fails, self.said, self.later, self.told = None, fails, [], [], []
        monkeypatch.setattr(background, "submit", lambda job: self.later.append(job) or True)
        self.variant = Variant("k", "unchecked", lambda: self.does("find", self.on_disk),
                               lambda: self.does("make", b"made"),
                               lambda cubin: self.does("load", f"function of {cubin.decode()}"))

    def does(self, what, value):
        self.said.append(what)
        if what in self.fails:
            raise self.fails[what]
        return value

    def ask(self):
        return self.variant.function_or_start(lambda: self.told.append("made"))


def test_from_the_disk(monkeypatch):
    world = World(monkeypatch)
    world.on_disk = b"kept"
    assert world.ask() == world.ask() == "function of kept"
    assert world.said == ["find", "load"] and world.variant.settled and not world.later and not world.told


def test_the_second_launch_has_it_made_in_the_background(monkeypatch):
    world = World(monkeypatch)
    assert world.ask() is None and not world.variant.wanted and not world.later
    assert world.ask() is world.ask() is None and world.variant.wanted
    assert len(world.later) == 1 and not world.variant.settled
    world.later[0]()
    assert world.said == ["find", "make"]  # it is loaded by who launches
    assert world.told == ["made"] * 3
    assert world.ask() == world.ask() == "function of made" and world.said == ["find", "make", "load"]
    assert len(world.told) == 3


def test_made_now_for_the_first_launch(monkeypatch):
    world = World(monkeypatch)
    world.variant.make_now()
    assert world.variant.function == world.ask() == "function of made" and not world.later


@pytest.mark.parametrize("what", ["find", "make", "load"])
def test_given_up(monkeypatch, capsys, what):
    world = World(monkeypatch, **{what: ValueError("no")})
    with settings.override(DEBUG=1):
        world.ask()
        world.ask()
        for job in world.later:
            job()
        assert world.ask() is None and world.variant.given_up and world.variant.settled
    assert "cutile: k unchecked: given up, ValueError: no" in capsys.readouterr().err
    seen = list(world.said)
    assert world.ask() is None and world.said == seen and seen.count(what) == 1


def test_where_there_is_no_background(monkeypatch):
    world = World(monkeypatch)
    monkeypatch.setattr(background, "submit", lambda job: False)
    for _ in range(3):
        assert world.ask() is None and not world.variant.settled


def test_what_a_parent_was_making_is_made_anew_in_a_child(monkeypatch):
    world = World(monkeypatch)
    world.ask()
    world.ask()
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    assert world.ask() is None and len(world.later) == 2
    world.later[1]()
    assert world.ask() == "function of made"
