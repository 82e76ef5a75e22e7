"""The form of the data about a launch, which stays: later versions may add keys, and change none.

A form is a type; `[form]` for a list; a dict for an object with these keys, each with its form and what it says; or
`Maybe(form)` for what may be null. Keys in angle brackets stand for any key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

VERSION = 1


class Maybe(NamedTuple):
    form: Any


NUMBER = float  # an int too
INDEX = [int]
OPERATIONS = {"<unit and dtype>": (int, "how many: `matrix float16` is products of matrices, `other float32` all else")}
CELLS = {
    "cell": (INDEX, "how many elements a cell has along each axis; cells at an edge may have fewer"),
    "counts": (INDEX, "how many cells there are along each axis"),
    "mean": ([NUMBER], "the mean of the elements of each cell, in row-major order of the cells"),
    "least": (int, "of all elements"),
    "most": (int, "of all elements"),
    "total": (int, "of all elements"),
}
REGION = {
    "array": (int, "which of `arrays`"),
    "box": (Maybe([INDEX]), "a tile: begin and length along each axis of the array. It may reach beyond the array: "
                            "what is outside is padding for a load, and dropped by a store"),
    "runs": (Maybe([int]), "elements that are no tile: first, length, first, length, … in row-major order"),
    "outside": (Maybe([INDEX]), "alone with `array`: the smallest box that has the elements outside the array that a "
                                "gather or scatter names; without it, `box` or `runs` has all"),
    "exact": (Maybe(bool), "with `runs`: whether no other element is among them; the shortest gaps between very many "
                           "runs are closed"),
}
STEP = {
    "at": (int, "which of `places`"),
    "access": (Maybe(int), "which of `accesses` the block runs"),
    "regions": (Maybe([REGION]), "of an access: what it touches"),
    "name": (Maybe(str), "of an assignment: the variable, or the part of it that is a tile"),
    "dtype": (Maybe(str), "of an assignment: of the tile"),
    "shape": (Maybe(INDEX), "of an assignment: of the tile"),
    "value": (Maybe(str), "of an assignment: all elements if they are few, else the first, the last and statistics"),
}
TOUCHED = {
    "array": (int, "which of `arrays`"),
    "box": ([INDEX], "begin and length along each axis"),
}
LINE = {
    "at": (int, "which of `places`"),
    "runs": (int, "how often blocks ran the line"),
    "bytes read": (int, "of elements that its accesses reached"),
    "bytes written": (int, "of elements that its accesses reached"),
    "operations": (OPERATIONS, "arithmetic"),
}

FORM = {
    "format": (str, "`cutile view`"),
    "version": (int, f"`{VERSION}`"),
    "kernel": (str, "its name"),
    "grid": (INDEX, "blocks along each of three axes"),
    "error": (Maybe(str), "the error with which the launch ended, if it did; the data is then of what ran before"),
    "arrays": ([{
        "name": (str, "of the parameter, with `[i]` for an item of a list or tuple"),
        "dtype": (str, ""),
        "shape": (INDEX, ""),
        "bytes": (int, "of its elements"),
        "reads": (CELLS, "how often each element is read by all blocks together; an atomic reads and writes"),
        "writes": (CELLS, "how often each element is written by all blocks together"),
        "touched": ({"read": (int, "elements that are read at least once"),
                     "written": (int, "elements that are written at least once")}, ""),
    }], "the array parameters"),
    "sources": ([{
        "file": (str, ""),
        "function": (str, ""),
        "first": (int, "the number of the first line"),
        "lines": ([str], ""),
    }], "the kernel, then the helpers that it calls"),
    "places": ([{
        "source": (int, "which of `sources`"),
        "line": (int, ""),
        "caller": (Maybe(int), "the place of the call, for a line of a helper"),
    }], "lines, each with the calls that lead to it"),
    "accesses": ([{
        "at": (int, "which of `places`"),
        "call": (str, "as the user calls it: `load`, `store`, `gather`, `atomic_add`, …"),
        "effect": (str, "`read`, `write` or `atomic`"),
        "unit": (str, "what its index counts: `tiles`, `rows`, `elements` or `offsets`"),
        "shape": (INDEX, "of the tile, or of the tiles of indices"),
        "arrays": (INDEX, "which of `arrays` it reached"),
        "padding": (Maybe(str), "the padding mode, or `value` for a tile of values"),
        "masked": (bool, "whether it has a mask"),
        "check_bounds": (bool, ""),
        "calls": ([str], "the calls that lead to it, as line and text: `13: at(-1, 0)`; the kernel's comes first"),
        "memory_order": (str, ""),
        "memory_scope": (str, ""),
        "runs": (int, "how often blocks ran it"),
        "elements": (int, "that it reached, in all runs"),
        "masked out": (int, "elements that its mask left out, in all runs"),
        "outside": (int, "elements outside the array, in all runs"),
        "bytes": (int, "of the elements that it reached"),
    }], "each load, store, gather, scatter and atomic, in the order in which they first ran"),
    "lines": ([LINE], "what each line cost"),
    "totals": ({
        "bytes read": (int, "of all accesses"),
        "bytes written": (int, "of all accesses"),
        "touched bytes": (int, "of elements that are read, plus those of elements that are written, each counted once: "
                               "what must come from memory and go there if a cache keeps all else"),
        "operations": (OPERATIONS, "arithmetic of all blocks"),
        "intensity": (Maybe(NUMBER), "operations for each byte that is read or written"),
        "intensity of touched bytes": (Maybe(NUMBER), "operations for each byte of `touched bytes`"),
    }, ""),
    "gpus": ([{
        "name": (str, ""),
        "bandwidth": (NUMBER, "bytes a second, from memory"),
        "peaks": ({"<unit and dtype>": (NUMBER, "operations a second")}, ""),
        "other": (NUMBER, "operations a second of what `peaks` does not list"),
    }], "for rooflines, from data sheets"),
    "blocks": ([{
        "block": (INDEX, ""),
        "steps": ([STEP], "in order: accesses, assignments, and lines with neither"),
        "reads": ([TOUCHED], "of each array that it reads: the smallest box that has all that it reads"),
        "writes": ([TOUCHED], "of each array that it writes: the smallest box that has all that it writes"),
        "complete": (bool, "whether no steps were left out at the end"),
    }], "the blocks of which every step was recorded"),
    "cells": (Maybe({
        "cell": (INDEX, "how many blocks a cell of the grid has along each axis"),
        "counts": (INDEX, "how many cells there are along each axis"),
        "bytes read": ([int], "of each cell, in row-major order"),
        "bytes written": ([int], "of each cell"),
        "boxes": ([[Maybe([INDEX])]], "by array, then by cell: the smallest box that has all that the cell's blocks "
                                      "touch, as begin and length along each axis; null where they touch nothing"),
        "boxes read": ([[Maybe([INDEX])]], "the same of what they read"),
        "boxes written": ([[Maybe([INDEX])]], "the same of what they write"),
    }), "all blocks, in cells of the grid; null if no block ran"),
    "findings": ([{
        "check": (str, "of the sanitizer: `bounds`, `undetermined`, `race` or `alias`"),
        "message": (str, ""),
        "help": (Maybe(str), "what to write instead"),
        "at": (Maybe(int), "which of `places`"),
        "array": (Maybe(int), "which of `arrays`"),
        "block": (Maybe(INDEX), "the first block in which it was found"),
        "element": (Maybe(INDEX), "the index of the element of the array"),
        "times": (int, "how often it was found"),
    }], "what the sanitizer reports, ten at most"),
}


def problems(x: Any, form: Any = FORM, path: str = "data") -> Iterator[str]:
    """Where data differs from a form."""
    if isinstance(form, Maybe):
        if x is not None:
            yield from problems(x, form.form, path)
    elif isinstance(form, list):
        if not isinstance(x, list):
            yield f"{path} is no list"
            return
        for i, item in enumerate(x):
            yield from problems(item, form[0], f"{path}[{i}]")
    elif isinstance(form, dict):
        yield from _of_object(x, form, path)
    elif not (isinstance(x, int | float) and not isinstance(x, bool) if form is NUMBER else type(x) is form):
        yield f"{path} is {x!r}, no {form.__name__}"


def _of_object(x: Any, form: dict, path: str) -> Iterator[str]:
    if not isinstance(x, dict):
        yield f"{path} is no object"
        return
    anything = next((f for key, (f, _) in form.items() if key.startswith("<")), None)
    for key, value in x.items():
        if key in form or anything is not None:
            yield from problems(value, form[key][0] if key in form else anything, f"{path}.{key}")
        else:
            yield f"{path}.{key} is not in the form"
    for key, (f, _) in form.items():
        if key not in x and not isinstance(f, Maybe) and not key.startswith("<"):
            yield f"{path}.{key} is missing"
