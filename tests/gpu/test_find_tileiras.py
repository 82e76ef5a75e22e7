"""Where the assembler is looked for, and which release it says to be."""

import subprocess
import sys
import warnings

import pytest

from cutile.gpu import find_tileiras
from cutile.gpu.find_tileiras import PACKAGES, Tool, find_tool
from tests.gpu.tileir.test_tileiras import posix, script


@pytest.fixture
def nothing_installed(tmp_path, monkeypatch):
    """No packages, no PATH, no toolkits; `packages` installs."""
    site = tmp_path / "site"
    site.mkdir()

    def packages(**versions):
        for short, version in versions.items():
            name = next(p for p in PACKAGES if p.endswith(short))
            file = script(site / "nvidia" / "bin", "", short)
            record = site / f"{name.replace('-', '_')}-{version}.dist-info" / "RECORD"
            record.parent.mkdir()
            record.write_text(f"{file.relative_to(site)},sha256=0,1\n{record.relative_to(site)},,\n")

    monkeypatch.setattr(sys, "path", [str(site), str(tmp_path / "archive.zip"), str(tmp_path / "nowhere")])
    monkeypatch.setattr(find_tileiras, "_elsewhere", lambda path, *homes: _without_usual_folders(path, *homes))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    find_tileiras._find.cache_clear()
    yield packages
    find_tileiras._find.cache_clear()


_elsewhere = find_tileiras._elsewhere


def _without_usual_folders(path, *homes):
    return (t for t in _elsewhere(path, *homes) if not str(t.path).startswith("/usr/local/"))


@posix
def test_nowhere(nothing_installed):
    with pytest.raises(FileNotFoundError, match=r"pip install 'cutile\[gpu\]'"):
        find_tool()


@posix
def test_packages_come_first_then_path_then_toolkits(nothing_installed, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "path_kit"))
    script(tmp_path / "path_kit" / "bin", "")
    assert find_tool().origin == "CUDA_PATH"
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home_kit"))
    script(tmp_path / "home_kit" / "bin", "")
    assert find_tool().origin == "CUDA_HOME"
    monkeypatch.setenv("PATH", str(tmp_path / "on_path"))
    script(tmp_path / "on_path", "")
    assert find_tool().origin == "PATH"
    nothing_installed(tileiras="13.5.37", nvcc="13.5.40", nvvm="13.5.37")
    find_tileiras._find.cache_clear()
    assert find_tool() == Tool(tmp_path / "site" / "nvidia" / "bin" / "tileiras",
                               "pip package nvidia-cuda-tileiras 13.5.37", "13.5.37-13.5.40")


@posix
@pytest.mark.parametrize("versions, problem", [
    ({"tileiras": "13.5.37", "nvcc": "13.4.92", "nvvm": "13.5.37"}, "not of one release .*nvidia-cuda-nvcc 13.4.92"),
    ({"tileiras": "13.5.37", "nvvm": "13.5.37"}, "without nvidia-cuda-nvcc"),
    ({"tileiras": "13.5.37"}, "without nvidia-cuda-nvcc and nvidia-nvvm"),
])
def test_packages_that_do_not_fit(nothing_installed, tmp_path, monkeypatch, versions, problem):
    """Said when there is nothing else, and warned of when there is."""
    nothing_installed(**versions)
    with pytest.raises(FileNotFoundError, match=problem):
        find_tool()
    monkeypatch.setenv("PATH", str(tmp_path / "on_path"))
    script(tmp_path / "on_path", "")
    with pytest.warns(RuntimeWarning, match=problem):
        assert find_tool().origin == "PATH"
    with warnings.catch_warnings():  # once
        warnings.simplefilter("error")
        find_tool()


@posix
def test_the_version_of_a_tool_without_packages_is_what_it_says(nothing_installed, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    script(tmp_path, "echo Cuda compilation tools, release 13.9, V13.9.7")
    assert find_tool().packaged == "" and find_tool().version == "13.9.7"


@posix
def test_the_first_package_on_the_path_counts(nothing_installed, tmp_path, monkeypatch):
    nothing_installed(tileiras="13.5.37", nvcc="13.5.37", nvvm="13.5.37")
    shadowed = tmp_path / "older" / "nvidia_nvvm-13.1.1.dist-info"
    shadowed.mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [*sys.path, str(shadowed.parent)])
    assert find_tool().packaged == "13.5.37"
    monkeypatch.setattr(sys, "path", [str(shadowed.parent), *sys.path])
    with pytest.raises(FileNotFoundError, match="not of one release"):
        find_tool()


def test_a_package_that_installed_no_tool(nothing_installed, tmp_path):
    nothing_installed(tileiras="13.5.37", nvcc="13.5.37", nvvm="13.5.37")
    (tmp_path / "site" / "nvidia" / "bin" / "tileiras").unlink()
    with pytest.raises(FileNotFoundError, match="holds no tileiras"):
        find_tool()


def test_importing_finds_nothing_yet():
    """The tool is looked for when it is needed."""
    code = ("import cutile.gpu.tileir.builder, cutile.gpu.tileir.tileiras, cutile.gpu.find_tileiras as f; "
            "print(f._find.cache_info().currsize)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


# ------------------------------------------------------------------ the current folder counts for nothing


@posix
@pytest.mark.parametrize("entry", ["", ".", "./", "site", "absolute", "linked"])
def test_packages_of_the_current_folder(nothing_installed, tmp_path, monkeypatch, entry):
    """Python puts it into sys.path by itself."""
    nothing_installed(tileiras="13.5.37", nvcc="13.5.37", nvvm="13.5.37")
    (tmp_path / "link").symlink_to(tmp_path / "site")
    monkeypatch.chdir(tmp_path if entry == "site" else tmp_path / "site")
    full = {"absolute": str(tmp_path / "site"), "linked": str(tmp_path / "link")}.get(entry, entry)
    monkeypatch.setattr(sys, "path", [full])
    with pytest.raises(FileNotFoundError):
        find_tool()
    monkeypatch.chdir(tmp_path / "site" / "nvidia")  # with the same sys.path, from elsewhere
    if full != entry:
        assert find_tool().packaged == "13.5.37"


@posix
@pytest.mark.parametrize("path", ["", ".", "./", "bin", ":", "/nowhere:", ".:/nowhere", "../here"])
@pytest.mark.parametrize("variable", ["PATH", "CUDA_HOME", "CUDA_PATH"])
def test_programs_of_the_current_folder(nothing_installed, tmp_path, monkeypatch, variable, path):
    here = tmp_path / "here"
    for folder in (here, here / "bin"):
        script(folder, "")
    monkeypatch.chdir(here)
    monkeypatch.setenv(variable, path)
    with pytest.raises(FileNotFoundError):
        find_tool()


@posix
def test_a_program_that_path_names_in_full(nothing_installed, tmp_path, monkeypatch):
    script(tmp_path / "bin", "")
    (tmp_path / "folders" / "tileiras").mkdir(parents=True)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "tileiras").write_text("no program")
    monkeypatch.setenv("PATH", ":".join([".", *(str(tmp_path / n) for n in ("nowhere", "folders", "texts", "bin"))]))
    assert find_tool().path == tmp_path / "bin" / "tileiras"


@posix
def test_a_toolkit_in_the_home_folder(nothing_installed, tmp_path, monkeypatch):
    script(tmp_path / "cuda" / "bin", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", "~/cuda")
    assert find_tool().path == tmp_path / "cuda" / "bin" / "tileiras"


@posix
def test_a_current_folder_that_was_removed(nothing_installed, tmp_path, monkeypatch):
    nothing_installed(tileiras="13.5.37", nvcc="13.5.37", nvvm="13.5.37")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert find_tool().packaged == "13.5.37"
