"""Errors of PyTorch and JAX that users of kernels meet, and what to write instead. Tests in tests/torch and tests/jax
provoke each of them.
"""

from tools.docgen.markdown import row

# What the message contains, why it comes, and what to do.
JAX = (
    ("Cannot serialize code with custom calls whose targets have no compatibility guarantees",
     "`jax.export` asks that somebody guarantees the meaning of a kernel's call.",
     "`jax.export.export(f, disabled_checks=cutile.jax.disabled_checks())`"),
    ("No FFI handler registered for cutile_launch_v1", "The process that runs an exported program knows no kernels.",
     "Write `import cutile.jax` in it, before the program is called."),
    ("Please install 'flatbuffers' in order to use Exported serialization", "JAX does not bring the package.",
     "`pip install flatbuffers`"),
    ("can't apply forward-mode autodiff (jvp) to a custom_vjp function",
     "`jax.jvp`, `jax.jacfwd` and `jax.hessian` go forwards; a backward function goes backwards.",
     "`jax.vjp`, `jax.jacrev`, and `jax.jacrev(jax.grad(f))` for second derivatives"),
    ("Slice entries must be static integers", "A size depends on a number that `jax.jit` traces.",
     "Name the number in `static_argnames` of `jax.jit`."),
    ("is not a valid JAX type", "A function under `jax.jit` returns what `f.compile` or `f.profile` gave.",
     "Compile and profile outside of `jax.jit`."),
)
PYTORCH = (
    ("element 0 of tensors does not require grad and does not have a grad_fn",
     "Outputs of a function by `ct.jit` have no derivative.",
     "`cutile.torch.op(\"mine::name\", f, backward=...)`, and call that"),
    ("Skip inlining `torch.compiler.disable()`d function",
     "With `fullgraph=True` nothing may be called that searches, compiles or measures.",
     "The text says what: in the place of a tuned `f`, call `f.function(..., **best)`, with `best = f.best(...)` "
     "before."),
    ("Call to `torch._dynamo.graph_break()`", "A call with `out=` or `stream=` breaks a graph.",
     "Leave them out under `fullgraph=True`."),
    ("failed to bind arguments when attempting to inline", "A call in a graph has a keyword that is no parameter.",
     "`help(f)` lists the parameters."),
    ("Expected a value of type 'int' for argument", "A number in a graph has not the type of its parameter.",
     "Write `128`, not `128.0`, for a `ct.Constant[int]`."),
)


def tables() -> str:
    """Both tables."""
    return "\n".join(f"### {library}\n\n| message | why | what to do |\n|---|---|---|\n"
                     + "".join(row((f"`` {text} ``" if "`" in text else f"`{text}`", why, what)) + "\n"
                               for text, why, what in rows)
                     for library, rows in (("JAX", JAX), ("PyTorch", PYTORCH)))
