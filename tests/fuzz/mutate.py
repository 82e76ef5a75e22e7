"""Random changes to the source of a kernel: statements, arguments, constants, operators, names, whole expressions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from random import Random

import cutile as ct
from cutile.ops._op import registry

CONSTANTS = (0, 1, -1, 2, 3, 4, 7, 8, 16, 1 << 31, -(1 << 63), 1 << 70, 0.5, -2.0, 1e400, -1e400, 1e-320, True, False,
             None, "", "x", "float32", b"ab", ..., 1j)
DTYPES = tuple(n for n in dir(ct) if isinstance(getattr(ct, n), ct.DType))
OPS = tuple(n for n, o in registry().items() if o.public)
METHODS = ("astype", "reshape", "item", "extract", "permute", "transpose", "shape", "dtype", "ndim", "load", "store",
           "slice", "tiled_view", "strides", "broadcast_to", "get_raw_memory", "real", "__class__", "T", "x", "at")
BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift, ast.BitOr,
          ast.BitXor, ast.BitAnd, ast.MatMult)
COMPARE = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn)
UNARY = (ast.Invert, ast.Not, ast.UAdd, ast.USub)
BUILTINS = ("len", "abs", "max", "min", "int", "float", "bool", "range", "tuple", "sum", "print", "pow", "round", "zip",
            "enumerate", "isinstance", "type", "list", "str", "getattr", "slice", "sorted", "any", "divmod", "object")
FORMATS = ("d", "5.2f", "<8", "+d", "x", "%", "s", "{", ".70f", "09", "^5", "e")
LIBRARY = tuple(n for n in dir(ct.lib) if callable(getattr(ct.lib, n)) and n[0] != "_")


def empty_arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])


class Mutator:
    """Changes one function definition in place."""

    def __init__(self, tree: ast.FunctionDef, rng: Random):
        self.tree, self.rng = tree, rng

    def mutate(self) -> None:
        """Make the drawn change, if there is something to change."""
        self.rng.choice((self.delete, self.duplicate, self.swap, self.move, self.drop_argument, self.swap_arguments,
                         self.repeat_argument, self.constant, self.constant, self.attribute, self.attribute,
                         self.operator, self.name, self.expression, self.expression, self.wrap, self.keyword,
                         self.statement))()

    def pick(self, kind, where: Callable = lambda n: True):
        found = [n for n in ast.walk(ast.Module(self.tree.body, [])) if isinstance(n, kind) and where(n)]
        return self.rng.choice(found) if found else None

    def suite(self) -> list[ast.stmt]:
        suites = [s for n in ast.walk(self.tree) for s in (getattr(n, "body", None), getattr(n, "orelse", None))
                  if isinstance(s, list) and s]
        return self.rng.choice(suites)

    # -- statements

    def delete(self):
        s = self.suite()
        s[self.rng.randrange(len(s))] = ast.Pass()

    def duplicate(self):
        s = self.suite()
        s.insert(self.rng.randrange(len(s) + 1), copy.deepcopy(self.rng.choice(s)))

    def swap(self):
        s = self.suite()
        i, j = self.rng.randrange(len(s)), self.rng.randrange(len(s))
        s[i], s[j] = s[j], s[i]

    def move(self):
        """Move a statement into another suite."""
        a, b = self.suite(), self.suite()
        x = copy.deepcopy(self.rng.choice(a))
        b.insert(self.rng.randrange(len(b) + 1), x)

    def statement(self):
        """Insert a statement, mostly control flow."""
        s = self.suite()
        i = self.rng.randrange(len(s))
        x = self.some_expression()
        new = self.rng.choice((
            lambda: ast.Break(), lambda: ast.Continue(), lambda: ast.Return(x), lambda: ast.Return(None),
            lambda: ast.If(x, [s[i]], []), lambda: ast.While(x, [s[i]], []),
            lambda: ast.While(ast.Constant(True), [s[i]], []),
            lambda: ast.For(ast.Name("i", ast.Store()), x, [s[i]], []),
            lambda: ast.Assign([ast.Name("x", ast.Store())], x), lambda: ast.Assert(x, None), lambda: ast.Expr(x),
            lambda: ast.Assign([ast.Tuple([ast.Name("x", ast.Store()), ast.Name("y", ast.Store())], ast.Store())], x),
            lambda: ast.Delete([ast.Name("x", ast.Del())]),
            lambda: ast.AugAssign(self.target(), self.rng.choice(BINARY)(), x),
            lambda: ast.AnnAssign(ast.Name("x", ast.Store()), x, copy.deepcopy(x), 1),
            lambda: ast.Assign([self.target(), ast.Starred(self.target(), ast.Store())], x),
            lambda: ast.While(x, [s[i]], [copy.deepcopy(s[i])]),
            lambda: ast.For(self.target(), ast.Call(ast.Name("range", ast.Load()), [x], []), [s[i], ast.Break()], [
                ast.Continue() if self.rng.random() < 0.2 else ast.Return(x)]),
            lambda: ast.If(x, [s[i]], [ast.Return(copy.deepcopy(x))]),
            lambda: ast.With([ast.withitem(x, self.rng.choice((None, self.target())))], [s[i]]),
            lambda: ast.Match(x, [ast.match_case(self.pattern(), None, [s[i]]), ast.match_case(
                ast.MatchAs(), None, [ast.Pass()])]),
            lambda: ast.Try([s[i]], [ast.ExceptHandler(None, None, [ast.Pass()])], [], []),
            lambda: ast.FunctionDef("f", empty_arguments("x", "y"), [s[i], ast.Return(x)], []),
            lambda: self.rng.choice((ast.Nonlocal, ast.Global))(["x"]),
            lambda: ast.Raise(x, None), lambda: ast.Import([ast.alias("math")]),
            lambda: ast.Expr(ast.Yield(x)),
        ))()
        s[i] = new

    def target(self) -> ast.expr:
        """What an assignment assigns to, mostly a variable of the function."""
        x = self.pick(ast.Name | ast.Attribute | ast.Subscript)
        if x is None or self.rng.random() < 0.3:
            return ast.Name("x", ast.Store())
        x = copy.deepcopy(x)
        x.ctx = ast.Store()
        return x

    def pattern(self) -> ast.pattern:
        return self.rng.choice((ast.MatchValue(ast.Constant(1)), ast.MatchAs(None, "x"), ast.MatchSingleton(None),
                                ast.MatchSequence([ast.MatchAs(None, "x"), ast.MatchStar("y")])))

    # -- arguments

    def call(self):
        return self.pick(ast.Call, lambda c: c.args or c.keywords)

    def drop_argument(self):
        if (c := self.call()) is not None:
            where = self.rng.choice([x for x in (c.args, c.keywords) if x])
            del where[self.rng.randrange(len(where))]

    def swap_arguments(self):
        if (c := self.call()) is not None and c.args:
            i, j = self.rng.randrange(len(c.args)), self.rng.randrange(len(c.args))
            c.args[i], c.args[j] = c.args[j], c.args[i]

    def repeat_argument(self):
        if (c := self.call()) is not None and c.args:
            c.args.insert(self.rng.randrange(len(c.args) + 1), copy.deepcopy(self.rng.choice(c.args)))

    def keyword(self):
        if (c := self.call()) is not None:
            name = self.rng.choice(("axis", "keepdims", "shape", "mask", "index", "dtype", "latency", "padding_mode",
                                    "rounding_mode", "flush_to_zero", "order", "reverse", "memory_order", "x"))
            if name not in {k.arg for k in c.keywords}:
                c.keywords.append(ast.keyword(name, self.some_expression()))

    # -- expressions

    def some_expression(self) -> ast.expr:
        x = self.pick(ast.expr, lambda e: not isinstance(getattr(e, "ctx", None), ast.Store | ast.Del)
                      and not isinstance(e, ast.Starred))
        if x is not None and self.rng.random() < 0.7:
            return copy.deepcopy(x)
        return ast.Constant(self.rng.choice(CONSTANTS))

    def replace(self, make: Callable[[ast.expr], ast.expr]) -> None:
        """Replace an expression by another."""
        fields = [(n, f, None) for n in ast.walk(self.tree) for f, x in ast.iter_fields(n) if _is_value(x)]
        fields += [(n, f, i) for n in ast.walk(self.tree) for f, xs in ast.iter_fields(n) if isinstance(xs, list)
                   for i, x in enumerate(xs) if _is_value(x)]
        fields = [place for place in fields if not isinstance(place[0], ast.arg | ast.arguments)]
        if not fields:
            return
        n, f, i = self.rng.choice(fields)
        if i is None:
            setattr(n, f, make(getattr(n, f)))
        else:
            getattr(n, f)[i] = make(getattr(n, f)[i])

    def expression(self):
        self.replace(lambda x: self.some_expression())

    def wrap(self):
        def around(x):
            y = self.some_expression()
            ct_op = ast.Attribute(ast.Name("ct", ast.Load()), self.rng.choice(OPS), ast.Load())
            return self.rng.choice((
                lambda: ast.Tuple([x], ast.Load()), lambda: ast.Tuple([x, y], ast.Load()),
                lambda: ast.List([x, y], ast.Load()), lambda: ast.Subscript(x, y, ast.Load()),
                lambda: ast.UnaryOp(self.rng.choice(UNARY)(), x), lambda: ast.Call(ct_op, [x], []),
                lambda: ast.Call(ct_op, [x, y], []), lambda: ast.Dict([y], [x]),
                lambda: ast.Call(ast.Name(self.rng.choice(BUILTINS), ast.Load()), [x], []),
                lambda: ast.Call(ast.Name(self.rng.choice(BUILTINS), ast.Load()), [x, y], []),
                lambda: ast.BinOp(x, self.rng.choice(BINARY)(), y),
                lambda: ast.Compare(x, [self.rng.choice(COMPARE)()], [y]),
                lambda: ast.BoolOp(self.rng.choice((ast.And, ast.Or))(), [x, y]),
                lambda: ast.IfExp(x, y, copy.deepcopy(x)),
                lambda: ast.Call(ast.Attribute(x, self.rng.choice(METHODS), ast.Load()), [y], []),
                lambda: ast.Call(ast.Attribute(x, "item", ast.Load()), [], []),
                lambda: ast.Call(ast.Attribute(ast.Name("ct", ast.Load()), "static_eval", ast.Load()), [x], []),
                lambda: ast.JoinedStr([ast.FormattedValue(x, -1, None)]),
                lambda: ast.JoinedStr([ast.FormattedValue(x, -1, ast.JoinedStr([ast.Constant(self.rng.choice(
                    FORMATS))]))]),
                lambda: ast.NamedExpr(ast.Name("x", ast.Store()), x), lambda: ast.Await(x),
                lambda: ast.Lambda(empty_arguments(), x),
                lambda: ast.Call(ast.Lambda(empty_arguments("x"), x), [y], []),
                lambda: ast.Call(ct_op, [ast.Starred(x, ast.Load())], []),
                lambda: ast.Call(ct_op, [], [ast.keyword(None, x)]),
                lambda: ast.Subscript(x, ast.Slice(y, None, copy.deepcopy(y)), ast.Load()),
                lambda: ast.Subscript(x, ast.Tuple([ast.Constant(None), ast.Slice()], ast.Load()), ast.Load()),
                lambda: ast.Compare(x, [ast.Lt(), ast.LtE()], [y, copy.deepcopy(x)]),
                lambda: ast.Call(ast.Call(ast.Attribute(ast.Name("ct", ast.Load()), "elementwise", ast.Load()), [
                    ast.Lambda(empty_arguments("x"), y)], []), [x], []),
                lambda: ast.Call(ast.Attribute(ast.Attribute(ast.Name("ct", ast.Load()), "lib", ast.Load()),
                                               self.rng.choice(LIBRARY), ast.Load()), [x], []),
                lambda: self.rng.choice((ast.ListComp, ast.GeneratorExp, ast.SetComp))(x, [ast.comprehension(
                    ast.Name("x", ast.Store()), y, [], 0)]),
                lambda: ast.Call(ast.Name("tuple", ast.Load()), [ast.GeneratorExp(x, [ast.comprehension(ast.Name(
                    "x", ast.Store()), ast.Call(ast.Attribute(ast.Name("ct", ast.Load()), "static_iter", ast.Load()),
                                                [y], []), [], 0)])], []),
            ))()

        self.replace(around)

    def constant(self):
        if (n := self.pick(ast.Constant)) is not None:
            n.value = self.rng.choice(CONSTANTS)

    def attribute(self):
        n = self.pick(ast.Attribute)
        if n is None:
            return
        if isinstance(n.value, ast.Name) and n.value.id == "ct":
            n.attr = self.rng.choice(DTYPES if n.attr in DTYPES and self.rng.random() < 0.7 else OPS)
        else:
            n.attr = self.rng.choice(METHODS)

    def operator(self):
        n = self.pick((ast.BinOp, ast.Compare, ast.UnaryOp, ast.BoolOp, ast.AugAssign))
        match n:
            case ast.BinOp() | ast.AugAssign():
                n.op = self.rng.choice(BINARY)()
            case ast.Compare():
                n.ops[self.rng.randrange(len(n.ops))] = self.rng.choice(COMPARE)()
            case ast.UnaryOp():
                n.op = self.rng.choice(UNARY)()
            case ast.BoolOp():
                n.op = self.rng.choice((ast.And, ast.Or))()

    def name(self):
        a = self.pick(ast.Name)
        b = self.pick(ast.Name)
        if a is not None and b is not None:
            a.id = b.id


def _is_value(x) -> bool:
    return isinstance(x, ast.expr) and not isinstance(getattr(x, "ctx", None), ast.Store | ast.Del)
