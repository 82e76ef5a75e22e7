import pytest

from cutile.gpu.tileir.diagnostics import errors, first_error, location
from cutile.spans import Span

SCOPE = ('#cuda_tile.di_subprogram<file = <"{file}" in "/u">, line = 3, name = "{name}", linkageName = "k", '
         'compileUnit = <file = <"{file}" in "/u">>, scopeLine = 3>')
INNER = '#cuda_tile.di_loc<loc("/u/helpers.py":3:3) in ' + SCOPE.format(file="helpers.py", name="helper") + ">"
OUTER = '#cuda_tile.di_loc<loc("/u/kern.py":13:5) in ' + SCOPE.format(file="kern.py", name="kern") + ">"
REFUSED = (f"loc(callsite({INNER} at {OUTER})): error: Incompatibility with architecture 'sm_80': "
           "unsupported type 'f8E4M3FN'\nerror: failed to compile Tile IR program\n")
VERIFIER = ("error: 'cuda_tile.bitcast' op types must be equal width, cannot convert '!cuda_tile.tile<8xf32>'\n"
            "error: verification failed for deserialized cuda_tile::ModuleOp\n"
            "error: input does not correspond to Tile IR bytecode\n")


def test_the_first_line_that_says_something():
    assert first_error(REFUSED) == "Incompatibility with architecture 'sm_80': unsupported type 'f8E4M3FN'"
    assert first_error(VERIFIER) == "'bitcast' op types must be equal width, cannot convert 'tile<8xf32>'"
    assert len(errors(VERIFIER)) == 1
    option = "tileiras: for the --gpu-name option: Cannot find option named 'x'!"
    assert first_error(option + "\n") == option


@pytest.mark.parametrize("output", ["", "error: failed to compile Tile IR program\n"])
def test_no_reason_given(output):
    assert first_error(output) == "" and location(output) is None


def test_place_with_its_calls():
    span = location(REFUSED)
    assert [(s.filename, s.line, s.col, s.function) for s in span.frames()] == [
        ("/u/kern.py", 13, 4, "kern"), ("/u/helpers.py", 3, 2, "helper")]


def test_the_very_span_of_the_program():
    site = Span("/u/kern.py", 13, 4, 13, 30, "kern")
    elsewhere = Span("/u/kern.py", 14, 4, 14, 30, "kern")
    exact = Span("/u/helpers.py", 3, 2, 4, 9, "helper", site)
    others = [site, Span("/u/helpers.py", 3, 2, 4, 9, "helper", elsewhere)]
    assert location(REFUSED, [*others, exact]) is exact
    assert location(REFUSED, others) not in others


def test_a_place_without_scope():
    span = location('loc("a b.py":7:1): error: no\n')
    assert (span.filename, span.line, span.col, span.call_site) == ("a b.py", 7, 0, None)


def test_without_a_place():
    assert location(VERIFIER) is None
