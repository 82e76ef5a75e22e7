"""serialize and deserialize: an object of an algorithm as bytes that another machine runs without an assembler [SER-*].

A blob has what the object was made for, as JSON, and cubins. Which kernels its calls may launch follows from plans for
sample counts: what they depend on of a count changes at powers of two, and with whether a tile divides it.

The blob of an object that runs through another package has the bytes of that package besides. They are taken where the
same version of it is installed, and the cubins elsewhere [DLG-4].
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cutile as ct
from cutile import dtypes
from cutile.compute.algorithm import Algorithm
from cutile.compute.operators import Operator, OperatorMeaning
from cutile.compute.pairs import SortOrder
from cutile.compute.plans import Plan
from cutile.compute.reduce import Determinism
from cutile.compute.value_types import Number, Struct, gpu_struct
from cutile.runtime import ahead

MAGIC, FORMAT = b"cutile.compute", 1


def serialize(obj: Algorithm) -> bytes:
    """The bytes of an object that `make_…` gave, with machine code for the compute capabilities that it was made for.

    No GPU is needed. The code serves any number of items, and arrays of any layout. Operators are not in it: a call
    brings them, as it brings arrays.

    Parameters
    ----------
    obj : object
        What `make_…` gave.

    Returns
    -------
    bytes
        For `deserialize`.

    Raises
    ------
    TypeError
        If `obj` is no such object.
    RuntimeError
        If it was made without `compute_capability` for arrays that may be on any GPU, and this machine has none.
    FileNotFoundError
        If there is no assembler, and the code is not in the cache.

    Notes
    -----
    [SER-1.round] [SER-1.type] [SER-2.several] [SER-3.host] [AOT-1.missing]

    Examples
    --------
    >>> x, out = np.arange(5.0), np.zeros(1)
    >>> reduce = ct.compute.make_reduce_into(x, out, max, 0.0)
    >>> again = ct.compute.deserialize(ct.compute.serialize(reduce))
    >>> nbytes = again(np.empty(again(None, x, out, max, 5, 0.0), np.uint8), x, out, max, 5, 0.0)
    >>> out
    array([4.])
    """
    if not isinstance(obj, Algorithm):
        raise TypeError(f"serialize() takes an object that make_… gave, not {type(obj).__name__}")
    if obj.blob is None:
        obj.blob = _packed(obj, _capabilities(obj))
    return obj.blob


def deserialize(blob: bytes) -> Algorithm:
    """The object that `serialize` made a blob of. Nothing is compiled; code is loaded at the first call on a GPU.

    A blob holds machine code, so take it only from those whose programs you would run.

    Parameters
    ----------
    blob : bytes
        What `serialize` gave.

    Returns
    -------
    object
        Called as the one that was serialized, for arguments of the same kinds and equal operators.

    Raises
    ------
    TypeError
        If `blob` is not bytes.
    ValueError
        If it is no blob, damaged, or of another release of cutile.

    Notes
    -----
    [SER-1.round] [SER-1.damaged] [SER-1.release]

    Examples
    --------
    >>> x, out = np.arange(5), np.zeros(5, int)
    >>> double = lambda v: 2 * v
    >>> made = ct.compute.deserialize(ct.compute.serialize(ct.compute.make_unary_transform(x, out, double)))
    >>> made(x, out, double, 5)
    >>> out
    array([0, 2, 4, 6, 8])
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize() takes bytes, not {type(blob).__name__}")
    said, cubins = _unpacked(bytes(blob))
    try:
        return _made_of(said, cubins, bytes(blob))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as e:
        raise ValueError(f"the blob has a part that is unknown here: {e}") from None


def pch_cache_dir() -> Path | None:
    """The folder of compiled code. The name is that of cuda.compute, which keeps headers there.

    Returns
    -------
    pathlib.Path or None
        None under CUTILE_CACHE=0.

    Examples
    --------
    >>> folder = ct.compute.pch_cache_dir()
    """
    return ahead.cache_folder()


def clear_pch_cache() -> int:
    """Remove all compiled code from `pch_cache_dir()`, that of other kernels too. It is compiled again when needed.

    Returns
    -------
    int
        How many files were removed.

    Notes
    -----
    [SER-4.cache]

    Examples
    --------
    >>> from cutile.settings import override
    >>> with override(CACHE=False):
    ...     ct.compute.clear_pch_cache()
    0
    """
    return ahead.clear_cache()


Algorithm.serialize = serialize  # type: ignore[method-assign]


# ------------------------------------------------------------------ bytes


def _packed(obj: Algorithm, capabilities: tuple) -> bytes:
    import json
    import zlib

    theirs = obj.delegated_part(capabilities)
    obj = obj.own()
    codes = ahead.codes(_launches(obj), capabilities) if capabilities else {}
    flat = [(name, *ahead.as_plain(code)) for name, found in codes.items() for code in found]
    said = {"algorithm": type(obj).__name__, "options": _plain(obj.options), "made": _plain(obj.made),
            "kinds": {name: _plain(kind) for name, kind in obj.kinds.items()}, "capabilities": capabilities,
            "codes": [(name, facts, symbol, len(code)) for name, facts, symbol, code in flat],
            "delegated": theirs and [theirs[0], len(theirs[1])]}
    code = b"".join([*(code for *_, code in flat), theirs[1] if theirs else b""])
    body = zlib.compress(b"\0".join([json.dumps(said).encode(), code]), 6)
    return _first_line(body) + body


def release() -> str:
    """This release of cutile, and what tells its sources from others."""
    return f"{ct.__version__}-{ahead.sources()}"


def _first_line(body: bytes) -> bytes:
    import hashlib

    return b"%s %d %s %s\n" % (MAGIC, FORMAT, release().encode(), hashlib.sha256(body).hexdigest().encode())


def _unpacked(blob: bytes) -> tuple[dict, bytes]:
    import json
    import zlib

    head, _, body = blob.partition(b"\n")
    magic, *words = head[:200].split(b" ")
    if magic != MAGIC or len(words) != 3:
        raise ValueError("this is no blob of cutile.compute.serialize")
    found, here = words[1].decode(errors="replace"), release()
    if found != here or words[0] != b"%d" % FORMAT:
        raise ValueError(f"the blob is of cutile {found}, and this is {here}: serialize the object again with this one")
    if head + b"\n" != _first_line(body):
        raise ValueError("the blob is damaged, or a part of it is missing")
    said, _, code = zlib.decompress(body).partition(b"\0")
    return json.loads(said), code


def _made_of(said: dict, code: bytes, blob: bytes) -> Algorithm:
    codes: dict[str, list] = {}
    at = 0
    for name, facts, symbol, size in said["codes"]:
        codes.setdefault(name, []).append(ahead.from_plain(facts, symbol, code[at:at + size]))
        at += size
    obj = _classes()[said["algorithm"]](_from_plain(said["options"]))
    obj.capabilities, obj.made = tuple(map(tuple, said["capabilities"])), _from_plain(said["made"])
    obj.kinds.update({name: _from_plain(kind) for name, kind in said["kinds"].items()})
    obj.blob, obj.carried = blob, ahead.carry(codes) if codes else None
    if said["delegated"]:
        made_by, size = said["delegated"]
        obj = obj.with_delegated_part(made_by, code[at:at + size])
    return obj


def _classes(cls: type = Algorithm) -> dict[str, type]:
    """The classes of algorithms by name."""
    return {name: c for sub in cls.__subclasses__() for name, c in {sub.__name__: sub, **_classes(sub)}.items()}


# ------------------------------------------------------------------ kinds as JSON

_ENUMS = {c.__name__: c for c in (SortOrder, Determinism)}


def _plain(x: Any) -> Any:
    """A kind or option as JSON has it."""
    if isinstance(x, Number):
        return {"number": x.dtype.name}
    if isinstance(x, Struct):
        fields = zip(x.cls.dtype.names, x.parts, strict=True)
        return {"struct": x.cls.__name__, "fields": [[name, _plain(t)] for name, t in fields]}
    if isinstance(x, Operator | OperatorMeaning):
        return {"operator": [[_plain(types), digest] for types, digest in x.meaning().digests.items()]}
    if isinstance(x, enum.Enum):
        return {"enum": type(x).__name__, "value": x.value}
    return list(map(_plain, x)) if isinstance(x, tuple) else x


def _from_plain(x: Any) -> Any:
    if isinstance(x, list):
        return tuple(map(_from_plain, x))
    if not isinstance(x, dict):
        return x
    if "number" in x:
        return Number(getattr(dtypes, x["number"]))
    if "struct" in x:
        return gpu_struct({name: _from_plain(t) for name, t in x["fields"]}, x["struct"]).value_type
    if "operator" in x:
        return OperatorMeaning({_from_plain(types): digest for types, digest in x["operator"]})
    return _ENUMS[x["enum"]](x["value"])


# ------------------------------------------------------------------ what calls may launch


def _capabilities(obj: Algorithm) -> tuple[tuple[int, int], ...]:
    """The compute capabilities to compile for: none for an object that is made for host memory."""
    if obj.capabilities is not None:
        return obj.capabilities
    if obj.in_host_memory:
        return ()
    found = ahead.capabilities_here()
    if not found:
        raise RuntimeError("there is no GPU here to compile for: pass compute_capability= where the object is made, "
                           "such as compute_capability=90")
    return tuple(found)


def _launches(obj: Algorithm) -> Iterator[tuple[Any, tuple]]:
    """A launch of each kernel that a call of an object may launch on a GPU, and more."""
    for operands in obj.samples():
        plan = Plan(operands)
        obj.plan(plan, *operands)
        yield from plan.launches()
