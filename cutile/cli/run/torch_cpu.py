"""Stand-ins on the CPU for the parts of torch.cuda that scripts for GPUs need to start.

Tensors that a script asks for on a GPU are made on the CPU, and streams and events do nothing, since a launch on CPU
tensors runs before it returns. Any other call of torch.cuda that needs a GPU is an error that names it.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NAMES = "device=, .cuda(), .to(), Stream, Event, stream, current_stream, default_stream and synchronize"


@contextmanager
def stood_in() -> Iterator[None]:
    """Within the `with` block, torch has these stand-ins once it is imported, unless it finds a GPU."""
    with ExitStack() as stack:
        if "torch" in sys.modules:
            _install(sys.modules["torch"], stack)
        else:
            finder = _AfterImport("torch", lambda torch: _install(torch, stack))
            sys.meta_path.insert(0, finder)
            stack.callback(lambda: finder in sys.meta_path and sys.meta_path.remove(finder))
        yield


class _AfterImport(MetaPathFinder):
    """Calls a function with a module when it has been imported for the first time."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]):
        self.name, self.then = name, then

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self.then)
        return spec


class _Then(Loader):
    """A loader that calls a function with the module that another one has loaded."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]):
        self.loader, self.then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        self.then(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def _install(torch: Any, stack: ExitStack) -> None:
    """Put the stand-ins in, until the stack is closed."""
    if torch.cuda.is_available():
        return
    stack.enter_context(_on_cpu(torch))
    ours = {"Stream": Stream, "Event": Event, "stream": stream, "StreamContext": stream, "synchronize": synchronize,
            "current_stream": current_stream, "default_stream": current_stream}
    others = {n: _named(n, f) for n, f in vars(torch.cuda).items()
              if n in getattr(torch.cuda, "__all__", ()) and n not in ours and callable(f) and not isinstance(f, type)}
    for name, value in {**others, **ours}.items():
        stack.callback(setattr, torch.cuda, name, vars(torch.cuda)[name])
        setattr(torch.cuda, name, value)


def _named(name: str, f: Callable) -> Callable:
    """Wrap a function of torch.cuda so that its error says that it needs a GPU."""
    @functools.wraps(f)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return f(*args, **options)
        except (AssertionError, RuntimeError) as e:
            raise RuntimeError(f"torch.cuda.{name}() needs a GPU, and PyTorch finds none; on the CPU `cutile run` "
                               f"stands in for {NAMES} alone") from e

    return call


def _on_cpu(torch: Any) -> Any:
    """A mode of torch in which CPU stands for every GPU."""
    cpu = torch.device("cpu")

    def moved(value: Any) -> Any:
        gpu = isinstance(value, str) and value.split(":")[0] == "cuda" or \
            isinstance(value, torch.device) and value.type == "cuda"
        return cpu if gpu else value

    class OnCpu(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function is torch.Tensor.cuda:
                return args[0]
            if function is torch.device:
                return function(*args, **(kwargs or {}))
            kwargs = {k: moved(v) for k, v in (kwargs or {}).items()}
            return function(*map(moved, args), **kwargs)

    return OnCpu()


class Stream:
    """A stream on which nothing waits."""

    cuda_stream = 0

    def __init__(self, *args: Any, **options: Any):
        pass

    def synchronize(self) -> None:
        pass

    wait_stream = wait_event = lambda self, other: None

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        return True


class Event:
    """A moment of the CPU's clock."""

    def __init__(self, *args: Any, **options: Any):
        self.time: float | None = None

    def record(self, stream: Any = None) -> None:
        self.time = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to `end`; RuntimeError if one was not recorded."""
        if self.time is None or end.time is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end.time - self.time) * 1e3

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True


@contextmanager
def stream(s: Any) -> Iterator[None]:
    """torch.cuda.stream, for streams on which nothing waits."""
    yield


def current_stream(device: Any = None) -> Stream:
    return Stream()


def synchronize(device: Any = None) -> None:
    pass
