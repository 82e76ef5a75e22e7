"""The plainest way to run a program of tests.interp.ir_programs: walk the IR with Python integers. An oracle."""

from __future__ import annotations

import itertools

from cutile.ir import nodes as ir


class _Leave(Exception):
    def __init__(self, kind: type, values: list):
        self.kind, self.values = kind, values


def run(kernel: ir.Kernel, grid: tuple[int, int, int], args: list[int]) -> str:
    """What the program prints, block after block."""
    out: list[str] = []
    for block in itertools.product(*map(range, grid)):
        env = dict(zip(kernel.params, args, strict=True))
        try:
            _block(kernel.body, env, block, out)
        except _Leave:
            pass
    return "".join(out)


def _block(b: ir.Region, env: dict, block: tuple, out: list[str]) -> list:
    for n in b.nodes:
        match n:
            case ir.Op():
                values = _op(n, [env[v] for v in n.operands], block, out)
            case ir.If():
                values = _block(n.then if env[n.cond] else n.orelse, env, block, out)
            case ir.For():
                values = _for(n, env, block, out)
            case ir.While():
                values = _while(n, env, block, out)
            case ir.Frame():
                try:
                    _block(n.body, env, block, out)
                except _Leave as e:
                    values = e.values
            case ir.Yield():
                return [env[v] for v in n.operands]
            case ir.Break() | ir.Continue() | ir.Return():
                raise _Leave(type(n), [env[v] for v in n.operands])
            case _:
                continue
        env.update(zip(ir.results_of(n), values, strict=False))
    raise AssertionError("a block without a terminator")


def _for(n: ir.For, env, block, out) -> list:
    carried = [env[v] for v in n.inits]
    for i in range(env[n.start], env[n.stop], env[n.step]):
        env.update(zip(n.params, carried, strict=True))
        env[n.iv] = i
        try:
            _block(n.body, env, block, out)
        except _Leave as e:
            if e.kind is ir.Return:
                raise
            carried = e.values
            if e.kind is ir.Break:
                break
    return carried


def _while(n: ir.While, env, block, out) -> list:
    carried = [env[v] for v in n.inits]
    while True:
        env.update(zip(n.params, carried, strict=True))
        if n.cond is not None and not _block(n.cond, env, block, out)[0]:
            return carried
        try:
            _block(n.body, env, block, out)
        except _Leave as e:
            if e.kind is ir.Return:
                raise
            carried = e.values
            if e.kind is ir.Break:
                return carried


def _op(n: ir.Op, x: list, block: tuple, out: list[str]) -> list:
    match n.op.name:
        case "constant":
            return [n.attrs["value"]]
        case "bid":
            return [block[n.attrs["axis"]]]
        case "add":
            return [x[0] + x[1]]
        case "mod":
            return [x[0] % x[1]]
        case "less":
            return [x[0] < x[1]]
        case "equal":
            return [x[0] == x[1]]
        case "broadcast_to":
            return [x[0]]  # both elements are alike
        case "sum":
            return [2 * x[0]]
        case "emit_text":
            out.append("".join(p if isinstance(p, str) else str(x[p[0]]) for p in n.attrs["parts"]))
            return []
