"""A small client of the Debug Adapter Protocol, which VS Code and other editors speak to debugpy."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.interp.debugging.interpreters import environment
from tests.patience import PATIENCE


class Client:
    """One debugging session over a socket."""

    def __init__(self, connection: socket.socket):
        self._socket = connection
        self._stream = connection.makefile("rb")
        self._seq = 0
        self._events: list[dict] = []  # not asked for yet
        self.thread = 0

    def send(self, command: str, **arguments: Any) -> int:
        self._seq += 1
        text = json.dumps({"seq": self._seq, "type": "request", "command": command, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        return self._seq

    def request(self, command: str, **arguments: Any) -> dict:
        """The body of the answer; the test fails if it is a refusal."""
        seq = self.send(command, **arguments)
        return self.answer(seq)

    def answer(self, seq: int) -> dict:
        while True:
            m = self._read()
            if m["type"] == "response" and m["request_seq"] == seq:
                assert m["success"], m
                return m.get("body") or {}
            if m["type"] == "event":
                self._events.append(m)

    def event(self, *names: str) -> dict:
        """The next event of one of these kinds."""
        while True:
            for m in self._events:
                if m["event"] in names:
                    self._events.remove(m)
                    return m
            m = self._read()
            if m["type"] == "event":
                self._events.append(m)

    def _read(self) -> dict:
        length = 0
        while line := self._stream.readline().strip():
            name, value = line.split(b":")
            if name == b"Content-Length":
                length = int(value)
        assert length, "the connection was closed"
        return json.loads(self._stream.read(length))

    # -- what a user of an editor does

    def attach(self, file: Path, breakpoints: list[dict], *, just_my_code: bool = True) -> list[bool]:
        """Start with breakpoints in a file: are they verified?"""
        self.request("initialize", adapterID="test", clientID="test", linesStartAt1=True, columnsStartAt1=True,
                     pathFormat="path")
        attached = self.send("attach", justMyCode=just_my_code)
        self.event("initialized")
        verified = self.breakpoints(file, breakpoints)
        self.request("configurationDone")
        self.answer(attached)
        return verified

    def breakpoints(self, file: Path, breakpoints: list[dict]) -> list[bool]:
        found = self.request("setBreakpoints", source={"path": str(file)}, breakpoints=breakpoints)["breakpoints"]
        return [b["verified"] for b in found]

    def stopped(self) -> list[tuple[str, int, str]]:
        """Wait until the program stops; its stack, innermost first: (file name, line, function)."""
        m = self.event("stopped", "terminated")
        assert m["event"] == "stopped", "the program ended"
        self.thread = m["body"]["threadId"]
        self.frames = self.request("stackTrace", threadId=self.thread)["stackFrames"]
        return [(Path(f["source"]["path"]).name, f["line"], f["name"].split(".")[-1]) for f in self.frames]

    def go(self, how: str) -> list[tuple[str, int, str]]:
        """continue, next, stepIn or stepOut, up to the next stop."""
        self.request(how, threadId=self.thread)
        return self.stopped()

    def end(self) -> None:
        self.request("continue", threadId=self.thread)
        self.event("terminated")

    def variables(self, frame: int = 0) -> dict[str, str]:
        scopes = self.request("scopes", frameId=self.frames[frame]["id"])["scopes"]
        local = next(s for s in scopes if s["name"] == "Locals")
        found = self.request("variables", variablesReference=local["variablesReference"])["variables"]
        return {v["name"]: v["value"] for v in found}

    def evaluate(self, expression: str, frame: int = 0) -> str:
        return self.request("evaluate", expression=expression, frameId=self.frames[frame]["id"],
                            context="repl")["result"]


@contextmanager
def session(python: str, program: Path) -> Iterator[Client]:
    """A program that waits for its debugger, and a client that is connected to it."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    child = subprocess.Popen([python, "-Xfrozen_modules=off", "-m", "debugpy", "--listen", f"127.0.0.1:{port}",
                              "--wait-for-client", str(program)],
                             env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with _connect(port, child) as connection:
            connection.settimeout(PATIENCE)
            client = Client(connection)
            try:
                yield client
            finally:  # so that debugpy's adapter, a process of its own, ends too
                client.send("disconnect", terminateDebuggee=True)
                child.wait(PATIENCE)
    finally:
        child.kill()
        child.wait()


def _connect(port: int, child: subprocess.Popen) -> socket.socket:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        except ConnectionRefusedError:
            assert child.poll() is None and time.monotonic() < until, "debugpy does not listen"
            time.sleep(0.05)
