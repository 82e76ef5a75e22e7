import os
import select
import shlex
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cutile import settings
from cutile.errors import (
    TileCompilerExecutionError,
    TileCompilerTimeoutError,
    TileInternalError,
    TileUnsupportedFeatureError,
)
from cutile.gpu import process
from cutile.gpu.tileir import tileiras
from cutile.gpu.tileir import types as ty
from cutile.gpu.tileir.builder import Module
from cutile.gpu.tileir.tileiras import Tool, assemble, compiler_timeout
from cutile.spans import Span
from tests.gpu.tileir.samples import add, available, vector_add
from tests.gpu.tileir.tool import needs_tool
from tests.patience import PATIENCE

posix = pytest.mark.skipif(os.name != "posix", reason="stands in for the tool with a shell script")
CODE = vector_add("13.1").to_bytes()


def script(folder: Path, text: str, name: str = "tileiras") -> Path:
    """A program that stands in for the tool."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def stand_in(folder: Path, text: str) -> Tool:
    version = 'if [ "$1" = --version ]; then echo "release 13.9, V13.9.7"; exit 0; fi\n'
    return Tool(script(folder, version + text), "test")


# ------------------------------------------------------------------ the real tool


@needs_tool
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"])
def test_vector_add(target):
    cubin = assemble(vector_add("13.4").to_bytes(), target)
    assert cubin[:4] == b"\x7fELF" and b"vector_add" in cubin


@needs_tool
@pytest.mark.parametrize("version", ["13.1", "13.2", "13.3", "13.4"])
def test_every_sample_assembles(version):
    """All samples of a version in one module."""
    module = Module(version)
    for i, name in enumerate(available(version)):
        add(module, name, f"k{i}")
    cubin = assemble(module.to_bytes(), "sm_100", opt_level=0)
    assert b"k0" in cubin and f"k{i}".encode() in cubin


@needs_tool
def test_a_foreign_toolkit_in_the_environment_does_no_harm(tmp_path, monkeypatch):
    for name in ("CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH", "CUDA_ROOT"):
        monkeypatch.setenv(name, str(tmp_path))
    library = tmp_path / "nvvm" / "lib64" / "libnvvm.so"
    library.parent.mkdir(parents=True)
    library.write_text("junk")
    assert assemble(CODE, "sm_90")[:4] == b"\x7fELF"


@needs_tool
def test_the_newest_version_is_one_that_it_reads():
    assert tileiras.newest_version() == tileiras.versions()[-1]
    assert Module().version == tileiras.newest_version()
    assemble(vector_add(ty.version_text(tileiras.newest_version())).to_bytes(), "sm_120")


@needs_tool
def test_refusal_at_the_users_line(tmp_path):
    kernel = Span("k.py", 1, 0, 9, 0, "k")
    place = Span("k.py", 4, 8, 4, 17, "inner", Span("k.py", 7, 4, 7, 9, "k"))
    m = Module("13.4")
    b = m.entry("k", [], loc=kernel).body
    with b.at(place):
        x = b.constant(ty.tile(ty.e4m3, (16, 16)), 1)
        b.op("print_tko", [[b.op("mmaf", [x, x, b.constant(ty.tile(ty.f32, (16, 16)), 0)])]], str="%f")
    b.op("return")
    folder = tmp_path / "two words"
    with settings.override(REPRODUCE=folder), pytest.raises(TileCompilerExecutionError) as e:
        assemble(m.to_bytes(), "sm_80", spans=[kernel, place], name="k")
    error = e.value
    assert error.loc is place
    assert error.message.startswith("Return code ") and "'f8E4M3FN'" in error.message and "sm_80" in error.message
    assert "error: Incompatibility" in error.tool_output
    assert error.compiler_flags == "--gpu-name=sm_80 -O3"
    assert error.compiler_version == tileiras.find_tool().version != "unknown"
    assert [f.suffix for f in sorted(folder.iterdir())] == [".tileirbc", ".txt"]
    kept = next(folder.glob("*.tileirbc"))
    command = kept.with_suffix(".txt").read_text(encoding="utf-8").splitlines()[0]
    assert kept.read_bytes() == m.to_bytes() and str(kept) in shlex.split(command)
    assert str(kept.with_suffix("")) in str(error)


@needs_tool
def test_bytecode_that_cannot_be_read():
    with pytest.raises(TileCompilerExecutionError, match="tileirdisasm cannot read this bytecode"):
        tileiras.disassemble(CODE[:100])
    with pytest.raises(TileCompilerExecutionError, match="Return code"):
        assemble(CODE[:100], "sm_90")


@needs_tool
def test_many_at_once():
    with ThreadPoolExecutor(4) as pool:
        cubins = list(pool.map(lambda t: assemble(CODE, t), ["sm_80", "sm_90"] * 3))
    assert cubins[0::2] == [cubins[0]] * 3 and cubins[0] != cubins[1]


def test_unknown_targets_are_refused_without_asking():
    with pytest.raises(TileUnsupportedFeatureError):
        assemble(CODE, "sm_75")


# ------------------------------------------------------------------ a tool that behaves badly


@posix
def test_a_crash(tmp_path):
    with pytest.raises(TileCompilerExecutionError, match=r"Return code -9: tileiras crashed \(SIGKILL\)") as e:
        assemble(CODE, "sm_90", tool=stand_in(tmp_path, "echo oh no >&2; kill -9 $$"))
    assert e.value.tool_output == "oh no\n" and e.value.compiler_version == "13.9.7"
    assert isinstance(e.value, TileInternalError)


@posix
def test_no_reason(tmp_path):
    with pytest.raises(TileCompilerExecutionError, match="Return code 5: .*: it gave no reason"):
        assemble(CODE, "sm_90", tool=stand_in(tmp_path, "exit 5"))


@posix
def test_success_without_a_file_is_a_failure(tmp_path):
    with pytest.raises(TileCompilerExecutionError, match="Return code 0"):
        assemble(CODE, "sm_90", tool=stand_in(tmp_path, "exit 0"))


@posix
def test_what_it_is_given(tmp_path):
    tool = stand_in(tmp_path, 'for last; do :; done; { echo "$@"; env; } > "$last"')
    said = assemble(CODE, "sm_90a", opt_level=1, lineinfo=True, tool=tool).decode()
    assert said.startswith("--gpu-name=sm_90 -O1 --lineinfo /")
    assert assemble(CODE, "sm_90", lineinfo=True, memcheck=True, tool=tool).startswith(
        b"--gpu-name=sm_90 -O3 --lineinfo --sanitize=memcheck /")
    assert "CUDA" not in said.split("\n", 1)[1]
    assert assemble(CODE, "sm_90", device_debug=True, lineinfo=True, tool=tool).startswith(
        b"--gpu-name=sm_90 -O3 --device-debug /")


@posix
def test_a_command_line_is_shown_at_the_top_of_the_ladder(tmp_path, capfd):
    tool = stand_in(tmp_path, 'for last; do :; done; echo x > "$last"')
    with settings.override(DEBUG=6):
        assemble(CODE, "sm_90", tool=tool)
    assert f"cutile: {shlex.quote(str(tool.path))} --gpu-name=sm_90 -O3" in capfd.readouterr().err


class Line:
    """A named pipe on which scripts tell that they run: it has an end when all of them have ended."""

    def __init__(self, path: Path):
        os.mkfifo(path)
        self.end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.opened = f"exec 3> {shlex.quote(str(path))}; echo began >&3; "  # of a script, the first thing that it does

    def said(self, until: bytes | None = None) -> bytes:
        """What comes, up to a word or to the end."""
        said = b""
        while until is None or until not in said:
            assert select.select([self.end], [], [], PATIENCE)[0], said
            more = os.read(self.end, 100)
            if not more:
                break
            said += more
        return said


@pytest.fixture
def line(tmp_path):
    line = Line(tmp_path / "line")
    yield line
    os.close(line.end)


@posix
def test_time_limit(tmp_path, line):
    """The tool and what it started are gone afterwards."""
    tool = stand_in(tmp_path, line.opened + "(sleep 20; echo alive >&3) & sleep 60")
    for limit in (0.3, 3, 30):
        with compiler_timeout(limit), pytest.raises(TileCompilerTimeoutError, match=f"more than {limit} s") as e:
            assemble(CODE, "sm_90", tool=tool)
        said = line.said()
        if said:  # where the machine is busy it may not even begin
            break
    assert said == b"began\n" and "compiler_timeout" in e.value.help


ENDED = """
import signal, sys
from pathlib import Path
from cutile.gpu.tileir.tileiras import Tool, assemble
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
assemble(b"", "sm_90", tool=Tool(Path(sys.argv[1]), "test"))
"""


@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_the_tool_does_not_outlive_this_process(name, tmp_path, line):
    sent = getattr(signal, name)
    if sent is not signal.SIGINT and not process._dies_with_us():
        pytest.skip("this system cannot end a process together with the one that started it")
    tool = stand_in(tmp_path, line.opened + "sleep 20 3>&-; echo alive >&3")
    python = subprocess.Popen([sys.executable, "-c", ENDED, str(tool.path)], stderr=subprocess.PIPE, text=True)
    assert line.said(b"began\n") == b"began\n"
    python.send_signal(sent)
    said = python.communicate(timeout=PATIENCE)[1]
    assert python.returncode == -sent and ("KeyboardInterrupt" in said) == (sent is signal.SIGINT)
    assert line.said() == b""


@pytest.mark.parametrize("how", ["absent", "too old", "broken"])
def test_where_a_process_cannot_be_tied_to_another_it_is_started_plainly(how, tmp_path, monkeypatch):
    old = script(tmp_path, "exit 1\n", "setpriv") if how == "too old" else tmp_path / "setpriv"
    monkeypatch.setattr(process, "on_path", lambda name, path: None if how == "absent" else str(old))
    process._dies_with_us.cache_clear()
    try:
        assert process._dies_with_us() == ()
        tool = stand_in(tmp_path, 'eval "cubin=\\${$#}"; printf code > "$cubin"')
        assert assemble(CODE, "sm_90", tool=tool) == b"code"
    finally:
        process._dies_with_us.cache_clear()


def test_time_limits_nest_and_come_from_the_setting():
    assert tileiras.time_limit() is None
    with settings.override(COMPILER_TIMEOUT=7):
        assert tileiras.time_limit() == 7
        with compiler_timeout(3):
            assert tileiras.time_limit() == 3
            with compiler_timeout(None):
                assert tileiras.time_limit() is None
        assert tileiras.time_limit() == 7


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "5", True, [1]])
def test_time_limit_must_be_positive(seconds):
    with pytest.raises(ValueError, match="positive"):
        with compiler_timeout(seconds):
            pass


@posix
@pytest.mark.parametrize("listed, newest", [("13.1\n13.2\n13.3\n13.9\n", (13, 3)), ("13.1\n", (13, 1))])
def test_versions_that_it_lists(tmp_path, listed, newest):
    tool = stand_in(tmp_path, f"printf '{listed.encode('unicode_escape').decode()}'")
    assert tileiras.newest_version(tool) == newest


@posix
@pytest.mark.parametrize("script, any_number", [("echo 13.5", True), ("printf '13.4\\n14.0\\n'", True),
                                                ("echo 13.4", False), ("exit 1", False)])
def test_which_tools_take_any_number_of_warps(tmp_path, script, any_number):
    assert tileiras.takes_any_warps(stand_in(tmp_path, script)) == any_number


@posix
def test_a_tool_that_cannot_list_versions_is_tried(tmp_path):
    tool = stand_in(tmp_path, '[ "$1" = --list-versions ] && exit 1; for last; do :; done\n'
                              'v=$(od -An -tu1 -j9 -N1 "$3"); [ $v -le 2 ] && echo x > "$last"')
    assert tileiras.versions(tool) == ((13, 1), (13, 2))


@posix
def test_a_tool_that_reads_nothing_of_ours(tmp_path):
    with pytest.warns(RuntimeWarning, match="trying 13.1"):
        assert tileiras.newest_version(stand_in(tmp_path, "echo 14.0")) == (13, 1)


@needs_tool
def test_memcheck_is_an_option_of_the_tool():
    """The code then has the tool's functions that test addresses."""
    plain, checked = (assemble(CODE, "sm_90", memcheck=memcheck) for memcheck in (False, True))
    assert b"__cuda_sanitizer_memcheck" in checked and b"__cuda_sanitizer_memcheck" not in plain
