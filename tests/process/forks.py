"""Forks while threads compile and launch: python tests/process/forks.py COUNT

Each child launches kernels that the parent knows, does not know, or is just compiling. An alarm ends a child that
hangs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings

import numpy as np

import cutile as ct
from cutile.gpu import cubin

SECONDS = 60  # before the alarm ends a child


def twice(x):
    return x + x


@ct.kernel
def short(o, C: ct.Constant):
    ct.store(o, 0, twice(ct.load(o, 0, (8,))) + ct.static_eval(C + 0))


@ct.kernel
def longer(o, C: ct.Constant):
    x = ct.load(o, 0, (8,))
    for i in range(3):
        x = twice(x) if ct.bid(0) == i else x + (lambda y: y * 0)(x)
    if C > 0:
        x = x * 1 + 0
    ct.store(o, 0, x + C)


KERNELS = (short, longer)


def launch(kernel, constant: int) -> None:
    o = np.arange(8, dtype=np.int32)
    ct.launch(None, (1,), kernel, (o, constant))
    assert (o == 2 * np.arange(8) + constant).all()


def build_something(name: str) -> None:
    """The work of threads that need GPU code, without the assembler."""
    cubin._one_at_a_time(name, lambda: time.sleep(0.001) or b"code")


def child(n: int) -> None:
    signal.alarm(SECONDS)
    for kernel in KERNELS:
        launch(kernel, 0)
        launch(kernel, 10_000 + n)
        launch(kernel, n)
    for i in range(4):
        build_something(f"code {i}")


def main(count: int) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks in processes with threads
    done, faults, made = False, [], 0
    for kernel in KERNELS:
        launch(kernel, 0)

    def work(kernel, first: int) -> None:
        nonlocal made
        n = first
        try:
            while not done:
                launch(kernel, 0 if n % 3 else n)
                build_something(f"code {n % 4}")
                made, n = made + 1, n + 1
        except BaseException as e:
            faults.append(e)

    threads = [threading.Thread(target=work, args=(k, i * 1000)) for i, k in enumerate((*KERNELS, *KERNELS))]
    for t in threads:
        t.start()
    failed = []
    for n in range(count):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                child(n)
                status = 0
            finally:
                os._exit(status)
        status = os.waitpid(pid, 0)[1]
        if status:
            failed.append((n, status))
    done = True
    for t in threads:
        t.join()
    assert not faults and not failed, (faults, failed)
    print(f"{count} children ran while threads made {made} launches")


if __name__ == "__main__":
    main(int(sys.argv[1]))
