"""What XLA calls, _handlers.c, by calls that are built by hand: with a driver that writes down what it is told, and
without JAX. Skipped where there is no C compiler.
"""

import ctypes
import functools
import importlib.util
import shutil
import signal
import subprocess
import sysconfig
import threading
from pathlib import Path

import numpy as np
import pytest

from tests.functions.shows import shows
from tests.gpu.extension import DEFINED
from tests.jax.call_frames import EXECUTE, INITIALIZE, INSTANTIATE, PREPARE, Calls

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "cutile" / "jax" / "_handlers.c"
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-missing-field-initializers"]
X, Y, Z = 0x10000, 0x20000, 0x30000  # addresses of buffers
INVALID_ARGUMENT, FAILED_PRECONDITION, UNIMPLEMENTED, INTERNAL, CANCELLED = 3, 9, 12, 13, 1


class Launch(ctypes.Structure):
    _fields_ = [("function", ctypes.c_uint64), ("stream", ctypes.c_uint64), ("context", ctypes.c_uint64),
                ("values", ctypes.c_uint64 * 32), ("grid", ctypes.c_uint * 3), ("mode", ctypes.c_int)]


def compiler():
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("needs a C compiler and Python's headers")
    return found


@functools.cache
def built(folder, driver):
    """The handlers as a module that opens this driver."""
    file = folder / f"_handlers{len(list(folder.iterdir()))}.so"
    subprocess.run([compiler(), "-O1", *STRICT, *DEFINED, "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}",
                    f'-DCUDA_DRIVER="{driver}"', SOURCE, "-o", file], check=True)
    spec = importlib.util.spec_from_file_location("_handlers", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("handlers")


@pytest.fixture
def fake(folder):
    """The driver's library, as if it had just been loaded."""
    file = folder / "fake_cuda.so"
    if not file.exists():
        subprocess.run([compiler(), "-O1", "-shared", "-fPIC", Path(__file__).parent / "fake_cuda.c", "-o", file],
                       check=True)
    library = ctypes.CDLL(str(file))
    for name in ("launch_count", "load_count", "parameter_count", "fails_load", "fails_function", "fails_launch",
                 "fails_stream"):
        set_(library, name, 0)
    (ctypes.c_int * 2).in_dll(library, "capability")[:] = 9, 0
    return library


def set_(library, name, value):
    ctypes.c_int.in_dll(library, name).value = value


def count(library, name):
    return ctypes.c_int.in_dll(library, name).value


def launches(library):
    return list((Launch * 4096).in_dll(library, "launches")[:count(library, "launch_count")])


@pytest.fixture
def gpu(folder, fake):
    return Calls(built(folder, folder / "fake_cuda.so").launch_on_gpu)


_keys = iter(range(10**6))


def plan(places=(0, -1, 1), image=(0, 7, 0), grid=(3, 2, 1), batch=(), steps=(), codes=((90, b"cubin\0"),), **other):
    """Attributes of a call; those of no other test have this key."""
    ends = np.cumsum([len(c) for _, c in codes])
    return {"places": np.array(places, np.int32), "image": np.array(image, np.uint64).tobytes(),
            "grid": np.array(grid, np.int64), "batch": np.array(batch, np.int64), "steps": np.array(steps, np.int64),
            "key": next(_keys).to_bytes(4, "little") * 8, "symbol": b"kernel",
            "code": b"".join(c for _, c in codes), "ends": ends.astype(np.int64),
            "architectures": np.array([a for a, _ in codes], np.int32), **other}


BUFFERS = [(X, (4,))], [(Y, (4,))]

# ------------------------------------------------------------------ launches


@shows("JC-3.launch", "JC-5.context")
def test_a_launch(gpu, fake):
    set_(fake, "parameter_count", 3)
    assert gpu(plan(), *BUFFERS, stream=0x203) is None
    one, = launches(fake)
    assert list(one.values[:3]) == [X, 7, Y] and list(one.grid) == [3, 2, 1]
    assert (one.stream, one.context) == (0x203, 0x1002) and fake.context_depth() == 0
    assert (ctypes.c_char * 64 * 4).in_dll(fake, "symbols")[0].value == b"kernel"


@shows("JC-3.once")
def test_a_kernel_is_loaded_once_for_each_gpu(gpu, fake):
    p = plan()
    for stream in (0x100, 0x101, 0x200, 0x100, 0x200):
        assert gpu(p, *BUFFERS, stream=stream) is None
    assert count(fake, "load_count") == 2 and len(launches(fake)) == 5
    assert len({(x.context, x.function) for x in launches(fake)}) == 2


@shows("JC-3.stage")
def test_what_each_stage_does(gpu, fake):
    p = plan()
    for stage in (INSTANTIATE, PREPARE):
        assert gpu(p, *BUFFERS, stage=stage) is None
    assert count(fake, "load_count") == 0
    assert gpu(p, *BUFFERS, stage=INITIALIZE) is None
    assert (count(fake, "load_count"), len(launches(fake))) == (1, 0)
    assert gpu(p, *BUFFERS, stage=EXECUTE) is None
    assert (count(fake, "load_count"), len(launches(fake))) == (1, 1)


@shows("JC-3.stage")
def test_loading_is_allowed_during_a_capture(gpu, fake):
    """The mode is relaxed while a kernel is loaded, and as before when it is launched."""
    assert gpu(plan(), *BUFFERS) is None
    assert (ctypes.c_int * 4).in_dll(fake, "modes")[0] == 2 and launches(fake)[0].mode == 0


@shows("JC-5.context")
def test_a_context_that_is_current_is_not_entered_again(gpu, fake):
    fake.cuCtxPushCurrent_v2(ctypes.c_uint64(0x1001))
    try:
        assert gpu(plan(), *BUFFERS) is None and fake.context_depth() == 1
    finally:
        fake.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_uint64()))


@shows("JC-3.once")
def test_threads_that_want_the_same_kernel(gpu, fake):
    p, answers = plan(), []
    start = threading.Barrier(8)

    def work(stream):
        start.wait()
        answers.extend(gpu(p, *BUFFERS, stream=stream) for _ in range(100))

    threads = [threading.Thread(target=work, args=(0x100 + 0x100 * (i % 2) + i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert answers == [None] * 800 and count(fake, "load_count") == 2 and len(launches(fake)) == 800


def test_a_batch(gpu, fake):
    set_(fake, "parameter_count", 3)
    p = plan(batch=(2, 3), steps=(0, 48, 16, 16))  # of the first axis, then of the second; each of both buffers
    assert gpu(p, *BUFFERS) is None
    assert [tuple(x.values[:3]) for x in launches(fake)] == [
        (X + 16 * j, 7, Y + 48 * i + 16 * j) for i in range(2) for j in range(3)]


@pytest.mark.parametrize("given", [{"grid": (0, 1, 1)}, {"grid": (2, 2, 0)}, {"batch": (2, 0), "steps": (0,) * 4}])
def test_nothing_to_run(gpu, fake, given):
    assert gpu(plan(**given), *BUFFERS) is None and launches(fake) == []


@shows("JC-5.code")
@pytest.mark.parametrize("capability, image", [((8, 0), b"a"), ((8, 6), b"b"), ((8, 9), b"b"), ((9, 0), b"c")])
def test_the_code_for_the_gpu(gpu, fake, capability, image):
    (ctypes.c_int * 2).in_dll(fake, "capability")[:] = capability
    p = plan(codes=((90, b"c\0"), (86, b"b\0"), (80, b"a\0")))
    assert gpu(p, *BUFFERS) is None
    assert (ctypes.c_char * 64).in_dll(fake, "images").value == image


# ------------------------------------------------------------------ errors


@shows("JC-5.none")
def test_a_gpu_without_code(gpu, fake):
    (ctypes.c_int * 2).in_dll(fake, "capability")[:] = 8, 9
    code, text = gpu(plan(codes=((90, b"c\0"), (100, b"d\0"))), *BUFFERS)
    assert code == FAILED_PRECONDITION and text.startswith("sm_90, sm_100: ") and "the GPU is sm_89" in text


@shows("JC-5.driver")
@pytest.mark.parametrize("what, text", [
    ("load", "kernel kernel cannot be loaded: device kernel image is invalid (CUDA_ERROR_INVALID_IMAGE)"),
    ("function", "kernel kernel is not in its module: device kernel image is invalid (CUDA_ERROR_INVALID_IMAGE)"),
    ("launch", "kernel kernel cannot be launched: device kernel image is invalid (CUDA_ERROR_INVALID_IMAGE)"),
    ("stream", "kernel kernel has no GPU: device kernel image is invalid (CUDA_ERROR_INVALID_IMAGE)"),
])
def test_the_driver_refuses(gpu, fake, what, text):
    p = plan()
    set_(fake, f"fails_{what}", 200)
    for _ in range(2):
        assert gpu(p, *BUFFERS) == (INTERNAL, text) and fake.context_depth() == 0 == fake.capture_mode()
    set_(fake, f"fails_{what}", 0)
    assert gpu(p, *BUFFERS) is None


def test_an_error_of_the_driver_without_a_name(gpu, fake):
    set_(fake, "fails_launch", 999)
    assert gpu(plan(), *BUFFERS) == (INTERNAL, "kernel kernel cannot be launched: no reason given (unknown error)")


@shows("JC-4.aligned")
def test_buffers_must_be_aligned(gpu, fake):
    code, text = gpu(plan(), [(X, (4,))], [(Y + 8, (4,))])
    assert code == INTERNAL and "buffer 1 of a kernel is at address 0x20008, which 16 does not divide" == text
    assert gpu(plan(places=(0, -1, -1)), [(X, (4,))], [(Y + 8, (4,))]) is None  # it is no parameter


def test_no_stream(gpu, fake):
    gpu.no_stream = True
    p = plan()
    assert gpu(p, *BUFFERS, stage=INITIALIZE) is None and gpu.destroyed == 1 and count(fake, "load_count") == 0
    assert gpu(p, *BUFFERS) == (12, "no stream here") and gpu.destroyed == 1


@shows("JC-4.damaged")
@pytest.mark.parametrize("name", sorted(plan()))
@pytest.mark.parametrize("damage", ["missing", "of another kind", "shorter", "longer"])
def test_damaged_attributes_are_refused(gpu, fake, name, damage):
    p = plan(batch=(2,), steps=(16, 16))
    value = p.pop(name)
    if damage == "of another kind":
        p[name] = np.zeros(3, np.int64) if isinstance(value, bytes) else b"text"
    elif damage == "shorter":
        p[name] = value[:-1]
    elif damage == "longer":
        p[name] = value + b"\0" if isinstance(value, bytes) else np.append(value, value[-1])
    answer = gpu(p, *BUFFERS)
    if name in ("symbol", "code") and damage in ("shorter", "longer") and (name, damage) != ("code", "shorter"):
        assert answer is None  # that is another name, and an image with more behind it
    else:
        assert answer[0] == INVALID_ARGUMENT and launches(fake) == []


def test_places_beyond_the_buffers(gpu, fake):
    assert gpu(plan(places=(0, -1, 2)), *BUFFERS)[0] == INVALID_ARGUMENT


def test_too_many_parameters(gpu, fake):
    n = 513
    assert gpu(plan(places=(-1,) * n, image=(0,) * n), *BUFFERS)[0] == INVALID_ARGUMENT
    assert gpu(plan(places=(-1,) * (n - 1), image=(0,) * (n - 1)), *BUFFERS) is None


def test_without_a_driver(folder):
    calls = Calls(built(folder, "/there/is/none").launch_on_gpu)
    code, text = calls(plan(), *BUFFERS)
    assert code == FAILED_PRECONDITION and "needs NVIDIA's driver" in text


# ------------------------------------------------------------------ the interface


@pytest.fixture(params=["launch_on_gpu", "run_on_cpu"])
def each(request, folder, fake):
    return Calls(getattr(built(folder, folder / "fake_cuda.so"), request.param))


@shows("JC-4.version")
def test_what_a_handler_says_of_itself(each):
    m = each.metadata()
    assert (m.version.major, m.version.minor, m.traits) == (0, 1, 1)


@shows("JC-4.sizes")
@pytest.mark.parametrize("change", ["a table too short", "another major version"])
def test_an_interface_that_is_not_known(each, change):
    if change == "a table too short":
        each.api.size = 80
    else:
        each.api.version.major = 1
    code, text = each(plan(), *BUFFERS)
    assert code == UNIMPLEMENTED and f"version {each.api.version.major}.3 of XLA's FFI, and cutile knows 0.1" in text


HEADER = """
#include <xla/ffi/api/c_api.h>
#include "xla_ffi.h"
#define SAME(theirs, field, ours, name) \\
    _Static_assert(offsetof(theirs, field) == offsetof(ours, name), #theirs "." #field)
#define EQUAL(a, b) _Static_assert((int)(a) == (int)(b), #a)
SAME(XLA_FFI_Extension_Base, type, FfiExtension, type);
SAME(XLA_FFI_Extension_Base, next, FfiExtension, next);
SAME(XLA_FFI_Api_Version, major_version, FfiVersion, major);
SAME(XLA_FFI_Api_Version, minor_version, FfiVersion, minor);
SAME(XLA_FFI_Metadata, api_version, FfiMetadata, version);
SAME(XLA_FFI_Metadata, traits, FfiMetadata, traits);
SAME(XLA_FFI_Metadata_Extension, metadata, FfiMetadataExtension, metadata);
SAME(XLA_FFI_Error_Create_Args, message, FfiErrorCreate, message);
SAME(XLA_FFI_Error_Create_Args, errc, FfiErrorCreate, code);
SAME(XLA_FFI_Error_Destroy_Args, error, FfiErrorDestroy, error);
SAME(XLA_FFI_Stream_Get_Args, ctx, FfiStreamGet, context);
SAME(XLA_FFI_Stream_Get_Args, stream, FfiStreamGet, stream);
SAME(XLA_FFI_Api, api_version, FfiApi, version);
SAME(XLA_FFI_Api, XLA_FFI_Error_Create, FfiApi, error_create);
SAME(XLA_FFI_Api, XLA_FFI_Error_Destroy, FfiApi, error_destroy);
SAME(XLA_FFI_Api, XLA_FFI_Stream_Get, FfiApi, stream_get);
SAME(XLA_FFI_ByteSpan, ptr, FfiSpan, text);
SAME(XLA_FFI_ByteSpan, len, FfiSpan, length);
SAME(XLA_FFI_Array, size, FfiArray, size);
SAME(XLA_FFI_Array, data, FfiArray, data);
SAME(XLA_FFI_Buffer, dtype, FfiBuffer, dtype);
SAME(XLA_FFI_Buffer, data, FfiBuffer, data);
SAME(XLA_FFI_Buffer, rank, FfiBuffer, rank);
SAME(XLA_FFI_Buffer, dims, FfiBuffer, dims);
SAME(XLA_FFI_Args, size, FfiBuffers, count);
SAME(XLA_FFI_Args, args, FfiBuffers, items);
SAME(XLA_FFI_Rets, rets, FfiBuffers, items);
SAME(XLA_FFI_Attrs, size, FfiAttributes, count);
SAME(XLA_FFI_Attrs, types, FfiAttributes, types);
SAME(XLA_FFI_Attrs, names, FfiAttributes, names);
SAME(XLA_FFI_Attrs, attrs, FfiAttributes, items);
SAME(XLA_FFI_CallFrame, api, FfiCall, api);
SAME(XLA_FFI_CallFrame, ctx, FfiCall, context);
SAME(XLA_FFI_CallFrame, stage, FfiCall, stage);
SAME(XLA_FFI_CallFrame, args, FfiCall, arguments);
SAME(XLA_FFI_CallFrame, rets, FfiCall, results);
SAME(XLA_FFI_CallFrame, attrs, FfiCall, attributes);
EQUAL(XLA_FFI_API_MAJOR, FFI_MAJOR);
EQUAL(XLA_FFI_Extension_Metadata, FFI_METADATA);
EQUAL(XLA_FFI_ExecutionStage_INITIALIZE, FFI_INITIALIZE);
EQUAL(XLA_FFI_ExecutionStage_EXECUTE, FFI_EXECUTE);
EQUAL(XLA_FFI_AttrType_ARRAY, FFI_ARRAY);
EQUAL(XLA_FFI_AttrType_STRING, FFI_STRING);
EQUAL(XLA_FFI_DataType_S32, FFI_S32);
EQUAL(XLA_FFI_DataType_S64, FFI_S64);
EQUAL(XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE, FFI_COMMAND_BUFFER_COMPATIBLE);
EQUAL(XLA_FFI_Error_Code_CANCELLED, FFI_CANCELLED);
EQUAL(XLA_FFI_Error_Code_INVALID_ARGUMENT, FFI_INVALID_ARGUMENT);
EQUAL(XLA_FFI_Error_Code_FAILED_PRECONDITION, FFI_FAILED_PRECONDITION);
EQUAL(XLA_FFI_Error_Code_UNIMPLEMENTED, FFI_UNIMPLEMENTED);
EQUAL(XLA_FFI_Error_Code_INTERNAL, FFI_INTERNAL);
"""


@shows("JC-4.header")
def test_the_structs_are_those_of_jaxlib(tmp_path):
    jax = pytest.importorskip("jax")
    file = tmp_path / "same.c"
    file.write_text(HEADER)
    base, folder = "XLA_FFI_Extension_Base", jax.ffi.include_dir()
    newer = base not in Path(folder, "xla/ffi/api/c_api.h").read_text()  # where it has another name, from JAX 0.12 on
    names = [f"-D{base}=XLA_FFI_InternalExtension"] if newer else []
    subprocess.run([compiler(), "-std=c11", "-fsyntax-only", *names, f"-I{folder}", f"-I{SOURCE.parent}", file],
                   check=True)


# ------------------------------------------------------------------ the handler for CPUs


@pytest.fixture
def cpu(folder, fake):
    module = built(folder, folder / "fake_cuda.so")
    calls = Calls(module.run_on_cpu)
    calls.set = module.set_interpreter
    return calls


def test_what_the_interpreter_gets(cpu):
    seen = []
    cpu.set(lambda *given: seen.append(given))
    p = plan()
    assert cpu(p, [(X, (4, 5)), (Z, ())], [(Y, (0,))], stream=0) is None
    (attributes, buffers), = seen
    assert attributes == {n: v if isinstance(v, bytes) else v.tobytes() for n, v in p.items()}
    assert buffers == [(X, (4, 5)), (Z, ()), (Y, (0,))]
    for stage in (INSTANTIATE, PREPARE, INITIALIZE):
        assert cpu(p, *BUFFERS, stage=stage) is None
    assert len(seen) == 1


def test_errors_of_the_interpreter(cpu):
    def run(attributes, buffers):
        raise RuntimeError("TileError: ä 東")

    cpu.set(run)
    assert cpu(plan(), *BUFFERS) == (INTERNAL, "TileError: ä 東")


@shows("JC-14.errors")
def test_an_interrupt_reaches_python(cpu):
    def run(attributes, buffers):
        raise KeyboardInterrupt

    cpu.set(run)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # another test may have set another
    try:
        with pytest.raises(KeyboardInterrupt):
            assert cpu(plan(), *BUFFERS) == (CANCELLED, "interrupted")
            for _ in range(1000):
                pass
    finally:
        signal.signal(signal.SIGINT, before)


@shows("JC-14.end")
def test_python_ends(folder):
    """Calls are counted and then refused, except those of the thread that ends Python."""
    module = built(folder, "libthat_nobody_has.so")
    calls, seen = Calls(module.run_on_cpu), []
    module.set_interpreter(lambda *_: seen.append(module.close()))

    def another():
        t = threading.Thread(target=lambda: answers.append(calls(plan(), *BUFFERS)))
        t.start()
        t.join()

    answers = []
    another()
    assert (answers, seen, module.close()) == ([None], [1], 0)
    another()
    assert answers[1][0] == FAILED_PRECONDITION and "Python, which ends" in answers[1][1] and seen == [1]
    assert calls(plan(), *BUFFERS) is None and seen == [1, 1]
