"""Tiles as text, for a debugger, and as a picture, for a notebook."""

from __future__ import annotations

import base64
import html
import struct
import zlib

import numpy as np

from cutile.dtypes import info
from cutile.types import TileType

SHOWN = 16  # tiles of up to so many elements are shown whole
PIXELS = 256  # rows and columns of a picture; of longer axes every n-th element is shown
_COLOURS = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float)  # low to high
_NAN, _POS_INF, _NEG_INF = (220, 38, 38), (255, 255, 255), (0, 0, 0)


def text(t: TileType, x: np.ndarray) -> str:
    """Type and elements of a tile: all elements if they are few, else the first, the last and statistics."""
    return f"{t if t.shape else info(t.dtype).short} {values(t, x)}"


def values(t: TileType, x: np.ndarray) -> str:
    """The elements of a tile, as `text` has them behind the type."""
    if t.shape == ():
        return f"{x.item()}"
    if x.size <= SHOWN:
        return _nested(x.tolist())
    return f"{_number(x.flat[0])} … {_number(x.flat[-1])}, {statistics(x, info(t.dtype).kind)}"


def statistics(x: np.ndarray, kind: str) -> str:
    """The least and greatest elements of an array, and how many are NaN or infinite; `kind` is that of its dtype."""
    if kind == "b":
        return f"true {int(x.sum())} of {x.size}"
    if kind != "f":
        return f"min {x.min()} max {x.max()} zero {int((x == 0).sum())}"
    nan = int(np.isnan(x).sum())
    counts = f"nan {nan} inf {int(np.isinf(x).sum())}"
    if nan == x.size:
        return counts
    return f"min {_number(np.fmin.reduce(x, axis=None))} max {_number(np.fmax.reduce(x, axis=None))} {counts}"


def picture(t: TileType, x: np.ndarray) -> str:
    """A tile as HTML: of two dimensions as a heat map, of others as text. NaN is red, infinity white, -infinity black.
    """
    title = html.escape(text(t, x))
    if x.ndim != 2 or info(t.dtype).kind not in "biuf":
        return f"<pre>{title}</pre>"
    steps = [-(-n // PIXELS) for n in x.shape]
    pixels = _coloured(x[::steps[0], ::steps[1]].astype(np.float64))
    scale = max(1, 256 // max(pixels.shape[:2]))
    height, width = (n * scale for n in pixels.shape[:2])
    note = "" if steps == [1, 1] else f"<br>every {steps[0]}. row and {steps[1]}. column"
    data = base64.b64encode(_png(pixels)).decode()
    return (f'<figure style="margin:0"><img alt="{title}" width="{width}" height="{height}" '
            f'style="image-rendering:pixelated" src="data:image/png;base64,{data}">'
            f"<figcaption><code>{title}</code>{note}</figcaption></figure>")


def _nested(x: list | float | int | bool) -> str:
    return f"[{', '.join(map(_nested, x))}]" if isinstance(x, list) else _number(x)


def _number(x: object) -> str:
    return f"{x:.4g}" if isinstance(x, float | np.floating) else str(x)


def _coloured(x: np.ndarray) -> np.ndarray:
    """One colour per element, by its place between the least and the greatest finite one."""
    finite = np.isfinite(x)
    low, high = (x[finite].min(), x[finite].max()) if finite.any() else (0.0, 0.0)
    with np.errstate(all="ignore"):
        place = np.where(finite, (x / 2 - low / 2) / ((high / 2 - low / 2) or 1.0), 0.0) * (len(_COLOURS) - 1)
    at = np.clip(place.astype(int), 0, len(_COLOURS) - 2)
    part = (place - at)[..., None]
    colours = (_COLOURS[at] * (1 - part) + _COLOURS[at + 1] * part).astype(np.uint8)
    for special, colour in ((np.isnan(x), _NAN), (x == np.inf, _POS_INF), (x == -np.inf, _NEG_INF)):
        colours[special] = colour
    return colours


def _png(pixels: np.ndarray) -> bytes:
    """An image of 8-bit red, green and blue as a PNG file."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    parts = (b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts)
