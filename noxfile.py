"""One session for each job; `nox -l` explains them. `nox -s demo` is the main job, `nox` runs all tests."""

import os
import sys
from collections.abc import Callable

import nox

nox.options.sessions = ["tests"]
nox.options.default_venv_backend = "venv"

# Tests start hundreds of processes, and each worker of pytest imports all files of tests: what one of them has compiled
# to Python's bytecode, the others read. So pip need not compile all files of all packages, of which few are imported.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
INSTALL = ("--no-compile",)

# Each process takes one half of the tests and, when it is through, some of the other's: so tests of one file share what
# that file makes, and none of the processes is idle at the end.
TWO_PROCESSES = ("-n", "2", "--dist", "worksteal")

PROJECT = nox.project.load_toml("pyproject.toml")["project"]
SOURCES = ["cutile", "conformance", "tests", "examples", "benchmarks", "tools", "noxfile.py"]
TORCH = "torch==2.13.0+cpu" if sys.platform == "linux" else "torch==2.13.0"  # elsewhere that is for CPUs too
# Tests that need PyTorch, JAX or Dask, and are skipped without them. The first need a process without cutile.torch.
# They are few, and a second process would take as long as some of them to import PyTorch's compiler. Of what `help`
# shows, the rest is the same without PyTorch.
USE_FRAMEWORKS = [["tests/_support/test_opaque.py"],
                  [*TWO_PROCESSES, "-k", "not test_help or torch or jax",
                   "tests/torch", "tests/test_torch.py", "tests/cli/run/test_torch_cpu.py", "tests/test_help.py",
                   "tests/jax", "tests/functions/test_dask.py", "tests/functions/test_jax.py",
                   "tests/functions/test_libraries.py", "tests/runtime/test_c_readers.py",
                   "conformance/test_arguments.py", "conformance/test_dtypes.py"]]


@nox.session(tags=["main"])
def demo(session: nox.Session) -> None:
    """Run every example on real data and print one table."""
    session.install(*INSTALL, "-e", ".[examples]")
    _run_examples(session, *session.posargs)


def _run_examples(session: nox.Session, *options: str) -> None:
    session.run("python", "examples/demo.py", *options)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, the examples among them. Arguments go to pytest: nox -s tests -- tests/ops -k sum"""
    session.install(*INSTALL, "-e", ".[examples,gpu,inspect,test]")  # the tools for GPU code run without a GPU
    _run_tests(session, *session.posargs)


def _run_tests(session: nox.Session, *options: str) -> None:
    session.run("pytest", *TWO_PROCESSES, *options, env={"CUTILE_CHECK": "1", "OPENBLAS_NUM_THREADS": "1"})


@nox.session
def ci(session: nox.Session) -> None:
    """What the sessions check, tests, conformance, docs and demo run, in one environment, which takes minutes to
    install. What fails does not keep the rest from running. `nox -s ci -- lint docs` runs these parts alone.
    """
    session.install(*INSTALL, "-e", ".[docs,examples,gpu,inspect,test]", "ruff")
    parts = {"lint": _lint, "tests": _run_tests, "conformance": _run_conformance,  # all tests: those of check, too
             "docs": _make_docs, "examples": _run_examples}
    failed = [name for name in session.posargs or parts if not _succeeds(parts[name], session)]
    if failed:
        session.error(f"failed: {', '.join(failed)}")


def _succeeds(part: Callable[[nox.Session], None], session: nox.Session) -> bool:
    try:
        part(session)
    except nox.command.CommandFailed:
        return False
    return True


@nox.session(reuse_venv=True)
def frameworks(session: nox.Session) -> None:
    """Kernels inside PyTorch and JAX: graphs, operators, arrays, examples; searches that a cluster of Dask measures.
    Needs no GPU, but wheels for CPUs and the assembler, and fails where one of them is missing. `nox -s frameworks --
    packages` only installs what others have made, which may happen while other sessions run, `-- cutile` only cutile,
    and `-- all` both.
    """
    if session.posargs != ["cutile"]:
        _install_frameworks(session)
    if session.posargs == ["packages"]:
        return
    session.install(*INSTALL, "-e", ".[gpu]")
    if session.posargs in (["all"], ["cutile"]):
        return
    session.run("python", "-c", "import distributed, jax, torch; print('PyTorch', torch.__version__, 'JAX', "
                                "jax.__version__, 'Dask', distributed.__version__)")
    for how_and_files in USE_FRAMEWORKS:
        session.run("pytest", *how_and_files, *session.posargs,
                    env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})


def _install_frameworks(session: nox.Session) -> None:
    # Without --no-deps, pip would also look for what PyTorch needs at this index, and the usual one has it all.
    session.install(*INSTALL, "--no-deps", "--retries", "1", TORCH, "--extra-index-url",
                    "https://download.pytorch.org/whl/cpu")
    session.install(*INSTALL, TORCH, "jax[cpu]", "flatbuffers",  # which jax.export needs
                    "distributed", "scikit-learn>=1.5", "pytest>=8", "pytest-xdist>=3.2", "hypothesis>=6.100",
                    *PROJECT["dependencies"], *PROJECT["optional-dependencies"]["gpu"])


@nox.session
def check(session: nox.Session) -> None:
    """Lint, and the tests of what holds the project together: layers, pages, the registry of ops."""
    session.install(*INSTALL, "-e", ".[test]", "ruff")
    _lint(session)
    tests = [f"tests/{name}.py" for name in ("test_layers", "test_mirror", "test_references", "test_docs",
                                             "ops/test_registry")]
    session.run("pytest", *tests, "-q")


def _lint(session: nox.Session) -> None:
    session.run("ruff", "check", *SOURCES)


@nox.session
def conformance(session: nox.Session) -> None:
    """The conformance suite on the interpreter; --impl NAME for another one, --report FOLDER for pages."""
    session.install(*INSTALL, "-e", ".[gpu,test]")  # export needs the assembler, but no GPU
    _run_conformance(session, *session.posargs)


def _run_conformance(session: nox.Session, *options: str) -> None:
    session.run("pytest", "conformance", *TWO_PROCESSES, *options, env={"OPENBLAS_NUM_THREADS": "1"})


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build, and run the notebooks. Examples on pages run; warnings, and links that lead
    nowhere, are errors.
    """
    session.install(*INSTALL, "-e", ".[docs,examples,gpu]")  # a page shows the code for a GPU
    _make_docs(session, *session.posargs)


def _make_docs(session: nox.Session, *options: str) -> None:
    _build_site(session, "docs/_build", *options)
    session.run("python", "-m", "tools.notebooks", "--run")


def _build_site(session: nox.Session, folder: str, *options: str) -> None:
    session.run("sphinx-build", "-j", "auto", "-W", "--keep-going", "-q", "-b", "html", "docs", folder, *options,
                env={"OPENBLAS_NUM_THREADS": "1"})
    session.run("python", "-m", "tools.site_links", folder)


@nox.session
def notebooks(session: nox.Session) -> None:
    """Write the notebooks of the tutorial and of the puzzles to notebooks/, and open them in JupyterLab."""
    session.install("-e", ".", "jupyterlab")
    session.run("python", "-m", "tools.notebooks")
    session.run("jupyter", "lab", "notebooks", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def wheel(session: nox.Session) -> None:
    """Build a wheel, install it in a fresh environment of each Python that is there, and launch a kernel."""
    session.install(".")
    session.run("python", "tests/wheel.py")


@nox.session
def acceptance(session: nox.Session) -> None:
    """Compare which programs the official implementation and cutile accept. Needs no GPU; takes minutes."""
    session.install("-e", ".[test]", "cuda-tile==1.7.0")
    session.run("python", "-m", "conformance.acceptance", *session.posargs)


@nox.session
def export(session: nox.Session) -> None:
    """The suite's chapter on compilation, on the official implementation. Needs no GPU."""
    session.install("./conformance", "cuda-tile[tileiras]==1.7.0")
    files = [f"test_{name}.py" for name in ("conventions", "export", "signatures", "symbols", "targets", "versions")]
    session.run("python", "-m", "conformance", *files, "--impl", "cuda.tile:export", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The interpreter's speed against NumPy, a hand-written loop and Triton's interpreter, as ratios."""
    session.install("-e", ".[examples]", "triton")
    session.run("python", "benchmarks/interp.py", *session.posargs)


@nox.session
def gpu(session: nox.Session) -> None:
    """On a machine with a GPU: launches, conformance, the cost of a launch. Packages with arrays: nox -s gpu -- torch
    """
    session.install("-e", ".[examples,gpu,test]", *(session.posargs or ["cupy-cuda13x"]))
    session.run("python", "benchmarks/gpu_smoke.py")
    session.run("pytest", "conformance", "--impl", "cutile:gpu")
    session.run("python", "benchmarks/gpu_launch.py")
    session.run("python", "benchmarks/function_calls.py")
    session.run("python", "benchmarks/gpu_launch.py", "--python")


@nox.session
def gpu_bench(session: nox.Session) -> None:
    """On a machine with a GPU: all benchmarks of GPU code, in eight minutes; the figures are in gpu_figures."""
    session.install("-e", ".[examples,gpu]", "torch", *session.posargs)
    session.run("python", "benchmarks/gpu_all.py")


@nox.session
def pages(session: nox.Session) -> None:
    """Pages of launches in a headless browser: one that is installed, such as Debian's chromium-headless-shell, or
    that of Playwright. Then the links of the documentation's site.
    """
    session.install("-e", ".[docs,examples,gpu,test]", "playwright")
    session.run("pytest", "tests/pictures/test_page.py", "-m", "pages", *session.posargs)
    _build_site(session, os.path.join(session.create_tmp(), "site"))


@nox.session
def deep(session: nox.Session) -> None:
    """Tests too long for each change: whole-domain sweeps, whole grids of dtypes, long and many random programs, every
    program assembled for GPUs, thousands of interrupts, hundreds of forks.
    """
    session.install("-e", ".[examples,gpu,test]")
    session.run("pytest", "tests", "conformance", "-n", "2", "-m", "deep", *session.posargs, env={"CUTILE_CHECK": "1"})
    # on the IR after each pass; on the bytecode
    for impl in ("tests.passes.adapter:EachPass", "tests.tileir_eval.adapter:Disassembled"):
        session.run("pytest", "conformance", "-n", "2", "--impl", impl)


@nox.session(python="3.12")
def mutation(session: nox.Session) -> None:
    """Do the conformance suite and the referee notice mutants of the code that gives kernels their meaning? Takes
    hours.
    """
    session.install("-e", ".[gpu,test]")  # the disassembler of GPU code is a judge
    session.run("python", "-m", "tests.mutation.run", session.create_tmp(), "--jobs", str(os.cpu_count()),
                *session.posargs, env={"OPENBLAS_NUM_THREADS": "1"})


@nox.session
def referee(session: nox.Session) -> None:
    """Generated programs in the interpreter against their own meanings; --second NAME for another implementation."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "conformance.referee", *session.posargs)


@nox.session
def seeded(session: nox.Session) -> None:
    """How many of twenty planted faults does the referee find without a GPU? Takes an hour."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "tests.conformance.seeded.run", *session.posargs)


@nox.session
def digests(session: nox.Session) -> None:
    """Whether every conformance program compiles to the bytecode recorded. Minutes; `-- record` records it anew."""
    session.install("-e", ".[gpu,test]")  # some tests export cubins
    session.run("python", "-m", "tests.digests", *(session.posargs or ["compare"]))


@nox.session
def generate(session: nox.Session) -> None:
    """Write the generated pages."""
    session.install("-e", ".")
    session.run("python", "-m", "tools.docgen")
