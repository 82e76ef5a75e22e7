"""Arguments are bound to the parameters of each op, as function and as method, as `inspect.Signature.bind` does it."""

from __future__ import annotations

import inspect
import random

import pytest

from cutile.errors import TileTypeError
from cutile.front.op_calls import bind, parameters_of, signature_of
from cutile.ir.terms import Static, Tuple
from cutile.ops._op import registry

CASES = [(o, False) for o in registry().values()] + [(o, True) for o in registry().values() if o.method]


def expected(signature: inspect.Signature, args: tuple, kwargs: dict) -> dict | None:
    """The arguments by parameter, in the order of the signature; None stands for a default."""
    try:
        found = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    return {n: Tuple(found.get(n, ())) if p.kind is p.VAR_POSITIONAL else found.get(n)
            for n, p in signature.parameters.items()}


@pytest.mark.parametrize(("o", "method"), CASES, ids=[f"{o.name}{'.method' * m}" for o, m in CASES])
def test_as_python_binds(o, method):
    signature, rng = signature_of(o, method), random.Random(o.name)
    names, outcomes = [*signature.parameters, "no_such_parameter"], set()
    for _ in range(150):
        args = tuple(Static(i) for i in range(rng.randrange(len(names) + 1)))
        rest = names[len(args):] if rng.random() < 0.8 else names
        kwargs = {n: Static(n) for n in rest if rng.random() < 0.6 and (n in signature.parameters or rng.random() < 0.2)}
        want = expected(signature, args, kwargs)
        outcomes.add(want is None)
        if want is None:
            with pytest.raises(TileTypeError, match=rf"\b{o.spelling if method else o.name}\(\)"):
                bind(o, method, args, kwargs)
            continue
        found = bind(o, method, args, kwargs)
        assert [*found] == [*want]
        for name, term in found.items():
            if isinstance(want[name], Tuple):
                assert term.items == want[name].items
            else:
                assert term is (parameters_of(o, method).defaults[name] if want[name] is None else want[name])
    assert True in outcomes and (False in outcomes or len(names) > 5)


def test_a_misspelt_keyword_is_named_before_what_is_missing_for_it():
    load = registry()["load"]
    with pytest.raises(TileTypeError, match="has no parameter `shap`") as e:
        bind(load, False, (Static(1), Static(2)), {"shap": Static(3)})
    assert "did you mean `shape`? its signature is load(" in e.value.help
    assert "padding_mode=ct.PaddingMode.UNDETERMINED, " in e.value.help  # as users write it


def test_a_keyword_that_stands_for_the_only_one_missing():
    store, where = registry()["store"], registry()["where"]
    with pytest.raises(TileTypeError, match="has no parameter `value`") as e:
        bind(store, False, (Static(1), Static(2)), {"value": Static(3)})
    assert e.value.help.startswith("did you mean `tile`? ")
    with pytest.raises(TileTypeError, match="has no parameter `value`") as e:
        bind(where, False, (Static(1),), {"value": Static(3)})  # two are missing
    assert e.value.help.startswith("its signature")
    with pytest.raises(TileTypeError, match="has no parameter `another`") as e:
        bind(store, False, (Static(1), Static(2), Static(3)), {"another": Static(3)})  # none is
    assert e.value.help.startswith("its signature")
