"""Registration, and programs that other processes run."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tests.functions.shows import shows
from tests.jax.kernels import N, copy, scale

jax = pytest.importorskip("jax")
jnp = jax.numpy
import jax.export  # noqa: E402

import cutile.jax  # noqa: E402
from cutile.jax import OutputPlaceholder, cutile_call, targets  # noqa: E402

CHECKS = cutile.jax.disabled_checks()


def in_another_process(code, *arguments, **environment):
    done = subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(code), *arguments], capture_output=True,
                          text=True, env={**__import__("os").environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


RUN = """
    import sys
    import jax, jax.export
    import numpy as np
    import cutile.jax
    data, x = open(sys.argv[1], "rb").read(), np.load(sys.argv[2])
    x = jax.numpy.asarray(x.view(sys.argv[3]))
    y = jax.jit(jax.export.deserialize(data).call)(x)
    assert y.dtype == x.dtype and not any(m.startswith("tests") for m in sys.modules)
    np.save(sys.argv[2], np.asarray(y).view(np.uint8))
"""


def exported(f, x):
    return jax.export.export(jax.jit(f), disabled_checks=CHECKS)(x).serialize()


@shows("JC-2.other")
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_a_program_of_another_process(tmp_path, dtype):
    """It needs neither the module of the kernel nor its source."""
    x = (jnp.arange(N) % 2 + 1).astype(dtype)
    program, values = tmp_path / "program", tmp_path / "values.npy"
    program.write_bytes(exported(lambda x: cutile_call((1,), copy, (x, OutputPlaceholder((N,), dtype))), x))
    np.save(values, np.asarray(x).view(np.uint8))
    in_another_process(RUN, str(program), str(values), dtype)
    assert np.array_equal(np.load(values), np.asarray(x).view(np.uint8))


def test_batches_and_numbers_in_another_process(tmp_path):
    x = jnp.arange(3 * N, dtype=jnp.float32).reshape(3, N)
    f = jax.vmap(lambda x: cutile_call((2,), scale, (x, OutputPlaceholder((N,), "float32"), 2.5, 4)))
    program, values = tmp_path / "program", tmp_path / "values.npy"
    program.write_bytes(exported(f, x))
    np.save(values, np.asarray(x).view(np.uint8))
    in_another_process(RUN, str(program), str(values), "float32")
    assert np.array_equal(np.load(values).view(np.float32), np.asarray(x) * 2.5)


@shows("JC-11.checks")
def test_export_asks_for_the_check():
    with pytest.raises(ValueError, match=targets.TARGET):
        jax.export.export(jax.jit(lambda x: cutile_call((1,), copy, (x, OutputPlaceholder((N,), "float32")))))(
            jnp.zeros(N))


@shows("JC-11.register")
def test_registering_again():
    targets.register.cache_clear()
    targets.register()


CACHED = """
    import sys, jax
    import jax.numpy as jnp
    import cutile.jax
    from tests.jax.kernels import N, copy
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    hits = []
    jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if "cache_hits" in name else None)
    f = jax.jit(lambda x: cutile.jax.cutile_call((1,), copy, (x, cutile.jax.OutputPlaceholder((N,), "float32"))))
    assert f(jnp.arange(8.0)).tolist() == list(range(8))
    print(len(hits))
"""


@shows("JC-14.cache")
def test_a_program_from_the_compilation_cache(tmp_path):
    assert in_another_process(CACHED, str(tmp_path)).split() == ["0"]
    assert int(in_another_process(CACHED, str(tmp_path))) > 0


@shows("JC-11.without")
def test_without_jax():
    """Importing cutile.jax works; calls say what is missing."""
    code = """
        import sys
        sys.modules["jax"] = None
        import cutile.jax
        for f in (lambda: cutile.jax.cutile_call((1,), None, ()), cutile.jax.register):
            try:
                f()
            except ImportError as e:
                print("needs JAX 0.7 or newer" in str(e))
    """
    assert in_another_process(code).split() == ["True", "True"]


@shows("JC-11.alone")
def test_only_cutile_jax_imports_jax():
    code = "import sys, cutile as ct, cutile.functions; print('jax' in sys.modules)"
    assert in_another_process(code).split() == ["False"]


@shows("JC-11.register")
def test_a_jax_that_refuses(monkeypatch):
    def refuse(*_, **__):
        raise ValueError("version 0.1 is too old")

    monkeypatch.setattr(jax.ffi, "register_ffi_target", refuse)
    targets.register.cache_clear()
    try:
        with pytest.raises(RuntimeError, match="does not take cutile's handlers: version 0.1 is too old"):
            targets.register()
    finally:
        monkeypatch.undo()
        targets.register()


def test_the_handler_for_gpus_as_xla_calls_it():
    """XLA takes its stages, and the handler reads XLA's frame up to the stream, which there is none of on a CPU."""
    c = targets.handlers()
    stages = {"initialize": c.launch_on_gpu, "execute": c.launch_on_gpu}
    jax.ffi.register_ffi_target("cutile_tests_gpu", stages, platform="cpu")
    f = jax.jit(lambda x: jax.ffi.ffi_call("cutile_tests_gpu", jax.ShapeDtypeStruct((N,), "float32"))(x, key=b"\0\xff"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="GPU context is not available"):
        f(jnp.zeros(N)).block_until_ready()
