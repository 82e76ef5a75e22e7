"""Mutated kernels, one at a time: make, launch or export, and judge the outcome."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import linecache
import signal
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np

import cutile as ct
from cutile import settings
from cutile.compilation import CallingConvention, KernelSignature, export_kernel
from tests.fuzz import corpus
from tests.fuzz.mutate import Mutator

try:
    import resource
except ImportError:  # not on every system
    resource = None

LIMIT = 3000  # loop iterations
SECONDS = 60
# Files from which the documented errors of a launch come; from other files they are faults.
REFUSING = ("cutile/runtime/launch.py", "cutile/runtime/kernel.py", "cutile/runtime/arguments.py",
            "cutile/runtime/annotations.py", "cutile/runtime/options.py", "cutile/interp/host_launch.py",
            "cutile/interp/memory/array_view.py", "cutile/interp/memory/buffer.py",
            "cutile/compilation/signature.py", "cutile/compilation/constraints.py", "cutile/compilation/export.py",
            "cutile/compilation/derive.py")
MEMORY = 1 << 30  # bytes for tiles; a mutant may ask for tiles that fill any machine
FUNCTIONS = {f.__name__: f for f in (*corpus.FUNCTIONS, *corpus.HELPERS)}


class Fault(AssertionError):
    """A mutant did something that no kernel may do."""


class Hang(BaseException):
    """A mutant ran too long."""


def source_of(fn: Callable) -> ast.FunctionDef:
    return ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]


def mutant(seed: int) -> tuple[str, str, Random]:
    """The source of a mutated kernel and its helpers, and the kernel's name."""
    rng = Random(seed)
    kernel = rng.choice(corpus.FUNCTIONS)
    trees = {f.__name__: source_of(f) for f in (*corpus.HELPERS, kernel)}
    used = [t for n, t in trees.items() if n == kernel.__name__ or any(
        isinstance(m, ast.Name) and m.id == n for m in ast.walk(trees[kernel.__name__]))]
    for _ in range(rng.choice((1, 1, 2, 3))):
        target = trees[kernel.__name__] if rng.random() < 0.8 else rng.choice(used)
        Mutator(target, rng).mutate()
    return "\n\n".join(map(_text, trees.values())), kernel.__name__, rng


def _text(tree: ast.FunctionDef) -> str:
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    except ValueError:  # such a tree is not valid Python
        return "?"


def build(text: str, name: str, seed: int) -> Callable | None:
    """The function, with source that `inspect` finds; None if Python itself does not compile it."""
    filename = f"<mutant {seed}>"
    scope = {"ct": ct, "np": np, **corpus.USED, "__name__": "mutant"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            exec(compile(text, filename, "exec", dont_inherit=True), scope)
    except Exception:  # a mutated annotation or default fails when Python makes the function
        return None
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    return scope[name]


def arguments(name: str, rng: Random) -> tuple[tuple, tuple]:
    """A grid and arguments, sometimes not those that the kernel expects."""
    grid, args = corpus.arguments(FUNCTIONS[name])
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        i = rng.randrange(len(args))
        with np.errstate(all="ignore"):
            args[i] = _other(args[i], args, rng)
    if rng.random() < 0.1:
        grid = rng.choice(((), (0,), (1,), (2, 2), (1, 3, 2), (3.0,), (-1,), 4))
    return grid, tuple(args)


def _other(given, args: list, rng: Random):
    make = rng.choice((
        lambda x: rng.choice((0, 1, 5, -3, 2.5, True, None, "x", (1, 2), 1 << 40)),
        lambda x: np.asarray(x).astype(rng.choice((np.int8, np.uint16, np.int64, np.float16, np.float64, np.bool_))),
        lambda x: np.asarray(x).reshape(-1)[::-2],
        lambda x: np.broadcast_to(np.asarray(x), (2, *np.shape(x))).copy(),
        lambda x: np.asarray(x).reshape(-1)[:0], lambda x: np.zeros((), np.asarray(x).dtype),
        lambda x: [np.array(x, np.float32, ndmin=1)] * 2, lambda x: rng.choice(args),
    ))
    try:
        return make(given)
    except (TypeError, ValueError):  # NumPy cannot make an array of it
        return given


@contextlib.contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(number, frame):
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def memory_limit(more: int) -> Iterator[None]:
    """Let this process have so many bytes more than it has, where the system can limit that."""
    if resource is None or not Path("/proc/self/statm").exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome(seed: int) -> str:
    """Run a mutant. Gives "ran" or the class of an allowed error; raises Fault for anything else."""
    text, name, rng = mutant(seed)
    try:
        fn = build(text, name, seed)
        if fn is None:
            return "not Python"
        grid, args = arguments(name, rng)
        schedule = rng.choice((None, None, "block", "interleave", "batch"))
        check, sanitize = rng.random() < 0.3, rng.choice((*["off"] * 6, "all", "traps"))
        if rng.random() < 0.2:
            return export(fn, args, rng)
        return launch(fn, grid, args, schedule, check, sanitize)
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        raise Fault(f"mutant {seed} of {name}: {type(e).__name__}\n{text}\n\n{traceback.format_exc()}") from e
    finally:
        linecache.cache.pop(f"<mutant {seed}>", None)


def launch(fn: Callable, grid, args, schedule: str | None, check: bool, sanitize: str = "off") -> str:
    with settings.override(STEP_LIMIT=LIMIT, SCHEDULE=schedule, CHECK=check, SANITIZE=sanitize):
        return _judged(lambda: ct.launch(None, grid, ct.kernel(fn), args), "ran")


def export(fn: Callable, args: tuple, rng: Random) -> str:
    """Make the bytecode for a GPU."""
    code, version = rng.choice(("sm_80", "sm_90", "sm_100", "sm_120")), rng.choice(("13.1", "13.2", "13.3"))

    def run():
        kernel = ct.kernel(fn)
        signature = KernelSignature.from_kernel_args(kernel, args, CallingConvention.cutile_python_v2())
        export_kernel(kernel, [signature.with_symbol("k")], io.BytesIO(), gpu_code=code,
                      output_format="tileir_bytecode", bytecode_version=version)

    return _judged(run, "exported")


def _judged(run: Callable[[], None], done: str) -> str:
    """`done`, or the class of an error that is meant for users. Others are raised."""
    try:
        with (time_limit(SECONDS), memory_limit(MEMORY), warnings.catch_warnings(),
              contextlib.redirect_stdout(io.StringIO())):
            warnings.simplefilter("error")
            run()
    except ct.TileInternalError:
        raise
    except ct.TileError as e:
        str(e)
        return type(e).__name__
    except (TypeError, ValueError, OverflowError) as e:
        frame = traceback.extract_tb(e.__traceback__)[-1]
        if not frame.filename.endswith(REFUSING):
            raise
        return f"{type(e).__name__} of a launch"
    return done
