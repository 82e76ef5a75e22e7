"""What a compiled program keeps of a call: for a GPU, in calls of the handler with a driver that writes down what it is
told; the assembler is replaced.
"""

import numpy as np
import pytest

import cutile as ct
from cutile.errors import TileUnsupportedFeatureError
from cutile.gpu import selection
from tests.functions.shows import shows
from tests.jax.kernels import N, add, copy, scale
from tests.jax.test_handlers import fake, folder, gpu, launches, set_  # noqa: F401

jax = pytest.importorskip("jax")
jnp = jax.numpy

from cutile.jax import InputOutput, OutputPlaceholder, primitive  # noqa: E402
from cutile.jax.attributes import for_cpu, for_gpu  # noqa: E402
from cutile.jax.calls import call  # noqa: E402
from cutile.jax.targets import TARGET  # noqa: E402

X = jnp.arange(N, dtype=jnp.float32)
A, B, C = 0x10000, 0x20000, 0x30000  # addresses


def out(*shape, dtype="float32"):
    return OutputPlaceholder(shape or (N,), dtype)


@pytest.fixture
def built(monkeypatch):
    """What the compiler was asked for."""
    asked = []

    def first(kernel, constraints, target, options, symbol):
        asked.append((kernel, constraints, str(target), symbol))
        return selection.First(f"code for {target}\0".encode(), True, True)

    monkeypatch.setattr(selection, "for_first_launch", first)
    monkeypatch.setattr(selection, "build", lambda kernel, *what: first(kernel, *what).code)
    return asked


def call_of(f, *arguments):
    """The call that a function makes."""
    found, = [e.params["call"] for e in jax.make_jaxpr(f)(*arguments).eqns if e.primitive.name == "cutile_call"]
    return found


def scaled(x, target="sm_90", **other):
    return call((2,), scale, (x, out(**other), 2.5, 4), target=target)


def as_int32(*numbers):
    return [int(n) & 0xFFFFFFFF for n in np.array(numbers, np.int32)]


@shows("JC-3.launch")
def test_parameters_of_a_launch(built, gpu, fake):  # noqa: F811
    attributes = for_gpu(call_of(scaled, X))
    set_(fake, "parameter_count", 7)
    assert gpu(attributes, [(A, (N,))], [(B, (N,))]) is None
    one, = launches(fake)
    number = int(np.float32(2.5).view(np.int32))
    assert [v if i in (0, 3) else v & 0xFFFFFFFF for i, v in enumerate(one.values[:7])] == [
        A, *as_int32(N, 1), B, *as_int32(N, 1), number]
    assert list(one.grid) == [2, 1, 1]
    (_, constraints, target, symbol), = built[:1]
    assert target == "sm_90" and attributes["symbol"].decode() == symbol
    assert {c.base_addr_divisible_by for c in constraints[:2]} == {16}


def test_an_input_that_is_an_output_is_passed_as_the_output(built, gpu, fake):  # noqa: F811
    @ct.kernel
    def k(x, y: ct.IndexedWithInt64):
        ct.store(y, 0, ct.load(y, 0, N) + ct.load(x, 0, N))

    attributes = for_gpu(call_of(lambda x: call((1,), k, (x, InputOutput(x)), target="sm_90"), X))
    set_(fake, "parameter_count", 6)
    assert gpu(attributes, [(A, (N,)), (C, (N,))], [(C, (N,))]) is None
    values = launches(fake)[0].values
    assert values[0] == A and values[3] == C and list(values[4:6]) == [N, 1]


def test_batches(built, gpu, fake):  # noqa: F811
    f = jax.vmap(jax.vmap(lambda x, y: call((1,), add, (x, y, out()), target="sm_90"), (0, None)), (None, 0))
    attributes = for_gpu(call_of(f, jnp.zeros((2, N)), jnp.zeros((3, N))))
    set_(fake, "parameter_count", 9)
    assert gpu(attributes, [(A, (2, N)), (B, (3, N))], [(C, (3, 2, N))]) is None
    size = 4 * N
    assert [(x.values[0], x.values[3], x.values[6]) for x in launches(fake)] == [
        (A + size * j, B + size * i, C + size * (2 * i + j)) for i in range(3) for j in range(2)]


@shows("JC-4.aligned")
@pytest.mark.parametrize("n, wanted", [(8, 16), (4, 16), (2, 1), (3, 1)])
def test_items_of_a_batch_are_as_aligned_as_they_are(built, n, wanted):
    """An item of 2 float32 is 8 bytes, and the next one no longer begins at a multiple of 16."""
    f = jax.vmap(lambda x: call((1,), copy, (x, out(n)), target="sm_90"))
    for_gpu(call_of(f, jnp.zeros((3, n))))
    assert {c.base_addr_divisible_by for c in built[0][1]} == {wanted}


def test_several_architectures(built, gpu, fake):  # noqa: F811
    attributes = for_gpu(call_of(lambda x: scaled(x, "sm_100, sm_90a"), X))
    assert {t for _, _, t, _ in built} == {"sm_90a", "sm_100"}
    assert attributes["architectures"].tolist() == [90, 100]
    assert gpu(attributes, [(A, (N,))], [(B, (N,))]) is None


@shows("JC-6.target")
def test_architectures_of_the_environment(built, monkeypatch):
    monkeypatch.setenv("CUTILE_TARGET", "sm_80, sm_90")
    assert for_gpu(call_of(lambda x: scaled(x, None), X))["architectures"].tolist() == [80, 90]


@shows("JC-6.none")
def test_no_architecture(built):
    with pytest.raises(TileUnsupportedFeatureError, match="(?s)for which GPU to compile kernel scale.*CUTILE_TARGET"):
        for_gpu(call_of(lambda x: scaled(x, None), X))
    with pytest.raises(ValueError, match="'sm_90', not 'h100'"):
        for_gpu(call_of(lambda x: scaled(x, "h100"), X))


@shows("JC-6.target")
def test_a_gpu_that_is_there(built, monkeypatch):
    class Device:
        compute_capability = "10.0"

    monkeypatch.setattr(jax, "local_devices", lambda backend: [Device(), Device()] if backend == "cuda" else [])
    assert for_gpu(call_of(lambda x: scaled(x, None), X))["architectures"].tolist() == [100]


def test_code_without_checks_where_none_are_needed(built):
    def kernels(n):
        built.clear()
        for_gpu(call_of(lambda x: call((2,), scale, (x, out(n), 2.5, 4), target="sm_90"), jnp.zeros(n)))
        return [k for k, *_ in built]

    assert len(kernels(8)) == 2 and len(kernels(7)) == 1


@shows("JC-2.key")
@pytest.mark.parametrize("on_gpu", [False, True])
def test_calls_that_do_the_same_have_equal_attributes(built, on_gpu):
    make = for_gpu if on_gpu else for_cpu
    first, second = (make(call_of(scaled, X)) for _ in range(2))
    assert {n: bytes(v) for n, v in first.items()} == {n: bytes(v) for n, v in second.items()}
    other = make(call_of(lambda x: scaled(x, dtype="float16"), X))
    assert other["key"] != first["key"]


@shows("JC-1.target", "JC-6.lowered")
def test_lowering_for_a_gpu_on_a_machine_without_one(built):
    traced = jax.jit(scaled).trace(X)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert f"@{TARGET}" in text and "code for sm_90" in text
    assert "code for" not in traced.lower(lowering_platforms=("cpu",)).as_text()


@shows("JC-2.both")
def test_exporting_for_both(built):
    import jax.export

    import cutile.jax

    program = jax.export.export(jax.jit(scaled), platforms=["cpu", "cuda"],
                                disabled_checks=cutile.jax.disabled_checks())(X)
    again = jax.export.deserialize(program.serialize())
    assert np.array_equal(again.call(X), X * 2.5) and set(again.platforms) == {"cpu", "cuda"}


def test_errors_of_the_compiler_are_for_users(monkeypatch):
    def refuse(*_):
        raise TileUnsupportedFeatureError("not on this one", help="try another")

    monkeypatch.setattr(selection, "for_first_launch", refuse)
    with pytest.raises(TileUnsupportedFeatureError, match="not on this one"):
        jax.jit(lambda x: scaled(x) + 1).trace(X).lower(lowering_platforms=("cuda",))


def test_nesting_has_a_limit(built):
    f, x = scaled, X
    for _ in range(17):
        f, x = jax.vmap(f), x[None]
    with pytest.raises(NotImplementedError, match="nested at most 16 times"):
        jax.jit(f)(x)
    assert primitive.handlers().AXES == 16
