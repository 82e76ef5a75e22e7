"""Launch the exported kernel through cuda.core, and compare every element with NumPy. cutile is not needed.

    python examples/aot/with_cuda_core.py softmax.cubin
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch

ROWS, COLS, PITCH = 777, 1000, 1004  # a row of 1000 and 4 that are never touched
SHARPNESS = 0.75
ALLOWED = 1e-6


def reference(x: np.ndarray) -> np.ndarray:
    e = np.exp((x.astype(np.float64) - x.max(axis=1, keepdims=True)) * SHARPNESS)
    return e / e.sum(axis=1, keepdims=True)


def main(cubin: str) -> int:
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = ObjectCode.from_cubin(cubin).get_kernel("softmax")

    nbytes = ROWS * PITCH * 4
    pinned = LegacyPinnedMemoryResource()
    host = [pinned.allocate(nbytes) for _ in "xy"]
    x, y = (np.from_dlpack(b).view(np.float32).reshape(ROWS, PITCH) for b in host)
    x[:] = 3 * np.random.default_rng(1).standard_normal(x.shape)
    y[:] = -7
    dx, dy = (device.allocate(nbytes, stream=stream) for _ in "xy")
    for to, of in zip((dx, dy), host, strict=True):
        to.copy_from(of, stream=stream)

    # The order is that of softmax.h: for each array its address, sizes and strides, then the number.
    rows = [np.int32(n) for n in (ROWS, COLS, PITCH, 1)]
    launch(stream, LaunchConfig(grid=ROWS, block=1), kernel, dx, *rows, dy, *rows, np.float32(SHARPNESS))
    host[1].copy_from(dy, stream=stream)
    stream.sync()

    error = np.abs(y[:, :COLS] - reference(x[:, :COLS])).max()
    whole = bool((y[:, COLS:] == -7).all())
    ok = whole and error <= ALLOWED
    print(f"cuda.core: softmax of {ROWS} x {COLS}, largest error {error:.2e} (allowed {ALLOWED:.0e})"
          f"{'' if whole else ', wrote beyond its rows'}: {'ok' if ok else 'WRONG'}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
