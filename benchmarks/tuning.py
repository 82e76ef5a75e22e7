"""What `ct.autotune` finds, and in which time, beside a search of everything: python benchmarks/tuning.py [--json FILE]

200 configurations of attention (tiles of queries and keys, blocks a multiprocessor, warps) are tried on a GPU: all of
them by `ct.tune.exhaustive_search`, and those that `ct.autotune` chooses, each in a process of its own with an empty
cache. Then what both found takes turns, by the GPU's clock. The exit status is 1 if what `ct.autotune` found takes over
1.03 of the best, or its search over a quarter of the time. `--only search` and `--only all` run one of the two.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import cutile as ct

BATCH, HEADS, LENGTH, D = 4, 16, 2048, 64
SPACE = [{"TM": tm, "TN": tn, "occupancy": occupancy, "num_worker_warps": warps}
         for tm in (16, 32, 64, 128, 256) for tn in (16, 32, 64, 128, 256) for occupancy in (1, 2, 3, 4)
         for warps in (4, 8)]
NEAR, SHARE = 1.03, 0.25  # the bars: of the best time, of the time of the whole search
LOG2_E = math.log2(math.e)
Heads = ct.Array["B H L D"]


@ct.kernel
def attention(q: Heads, k: Heads, v: Heads, out, TM: ct.Constant[int], TN: ct.Constant[int], D: ct.Constant[int]):
    i, head, batch = ct.bid(0), ct.bid(1), ct.bid(2)
    query = ct.load(q, (batch, head, i, 0), (1, 1, TM, D)).reshape((TM, D))
    top = ct.full((TM, 1), -math.inf, ct.float32)
    total = ct.zeros((TM, 1), ct.float32)
    acc = ct.zeros((TM, D), ct.float32)
    for j in range(ct.cdiv(k.shape[2], TN)):
        keys = ct.load(k, (batch, head, 0, j), (1, 1, D, TN), order=(0, 1, 3, 2)).reshape((D, TN))
        score = ct.mma(query, keys, ct.zeros((TM, TN), ct.float32))
        new_top = ct.maximum(top, ct.max(score, axis=1, keepdims=True) * LOG2_E)
        p = ct.exp2(score * LOG2_E - new_top, flush_to_zero=True)
        shrink = ct.exp2(top - new_top, flush_to_zero=True)
        total = total * shrink + ct.sum(p, axis=1, keepdims=True)
        values = ct.load(v, (batch, head, j, 0), (1, 1, TN, D)).reshape((TN, D))
        acc = ct.mma(p.astype(v.dtype), values, acc * shrink)
        top = new_top
    ct.store(out, (batch, head, i, 0), (acc / total).reshape((1, 1, TM, D)).astype(out.dtype))


def launch_of(config: dict[str, int], arrays: tuple) -> tuple[tuple, Any, tuple]:
    hints = {n: config[n] for n in ("occupancy", "num_worker_warps")}
    return ((ct.cdiv(LENGTH, config["TM"]), HEADS, BATCH), attention.replace_hints(**hints),
            (*arrays, config["TM"], config["TN"], D))


def arrays() -> tuple:
    import torch

    torch.manual_seed(0)
    return tuple(torch.randn(BATCH, HEADS, LENGTH, D, device="cuda", dtype=torch.float16) / 2 for _ in range(4))


def search_all() -> dict[str, Any]:
    import torch

    given = arrays()
    stream, start = torch.cuda.current_stream(), time.perf_counter()
    found = ct.tune.exhaustive_search(SPACE, stream, lambda c: launch_of(c, given)[0], lambda c: launch_of(c, given)[1],
                                      lambda c: launch_of(c, given)[2], quiet=True)
    return {"seconds": time.perf_counter() - start, "best": found.best.config, "failed": len(found.failures),
            "times": [(m.config, m.mean_us) for m in found.successes]}


def search() -> dict[str, Any]:
    f = ct.autotune(SPACE, timeout_s=None, quiet=True)(
        ct.jit(attention, grid="cdiv(L, TM) H B", out=ct.Out(like="q"), defaults={"D": D}))
    given, start = arrays()[:3], time.perf_counter()
    found = f.tune(*given)
    return {"seconds": time.perf_counter() - start, "best": found.best, "failed": len(found.failures),
            "why": [why.partition("\n")[0] for _, why in found.failures], "times": [t[:2] for t in found.times]}


SEARCHES = {"all": search_all, "search": search}


def run_apart(which: str) -> dict[str, Any]:
    """A search in a process of its own, whose cache is empty."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        subprocess.run([sys.executable, __file__, "--here", which, "--json", out], check=True,
                       env={**os.environ, "CUTILE_CACHE_DIR": folder})
        return json.loads(out.read_text())


def compare(configs: dict[str, dict[str, int]]) -> dict[str, float]:
    """Milliseconds of what each search found."""
    import torch
    from _gpu_timing import medians, scratch

    given, stream = arrays(), torch.cuda.current_stream()
    launches = {name: launch_of(c, given) for name, c in configs.items()}
    for launch in launches.values():
        for _ in range(20):  # until all variants are there
            ct.launch(stream, *launch)
            time.sleep(0.1)
    return medians({name: lambda x=x: ct.launch(stream, *x) for name, x in launches.items()}, scratch())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", choices=SEARCHES)
    parser.add_argument("--here", choices=SEARCHES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        given.json.write_text(json.dumps(SEARCHES[given.here]()))
        return 0
    found = {}
    for which in [given.only] if given.only else SEARCHES:
        found[which] = one = run_apart(which)
        print(f"{which}: {one['seconds']:.1f} s, {len(one['times'])} of {len(SPACE)} measured, {one['failed']} failed, "
              f"best {one['best']}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(found))
    if given.only:
        return 0
    ms = compare({which: one["best"] for which, one in found.items()})
    near, share = ms["search"] / ms["all"], found["search"]["seconds"] / found["all"]["seconds"]
    print(f"the best of all takes {ms['all']:.4f} ms, what ct.autotune found {ms['search']:.4f}: {near:.3f} of it, in "
          f"{share:.2f} of the time")
    return int(near > NEAR or share > SHARE)


if __name__ == "__main__":
    sys.exit(main())
