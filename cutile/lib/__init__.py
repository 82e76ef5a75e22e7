"""cutile.lib: functions that kernels often need, written in tile code. `ct.lib.softmax(x)` in a kernel.

In: tiles, in a kernel. Out: tiles. The files know nothing but the public names of cutile: what a function does is what
the ops do that it calls, so every back end runs it. It is typed in the place of the call, as a function of the user is.
"""

from cutile.lib.activations import gelu, gelu_tanh, sigmoid, silu, softplus
from cutile.lib.elementwise import erf, expm1, log1p, rint, trunc
from cutile.lib.moves import flip, one_hot, roll
from cutile.lib.random_numbers import normal, philox, random_bits, to_normal, to_uniform, uniform
from cutile.lib.ranking import cummax, cummin, topk
from cutile.lib.statistics import logsumexp, mean, norm, softmax, std, var

__cutile_api__ = True  # for an unknown attribute of this module, errors in tile code say what to write instead

__all__ = ["cummax", "cummin", "erf", "expm1", "flip", "gelu", "gelu_tanh", "log1p", "logsumexp", "mean", "norm",
           "normal", "one_hot", "philox", "random_bits", "rint", "roll", "sigmoid", "silu", "softmax", "softplus",
           "std", "to_normal", "to_uniform", "topk", "trunc", "uniform", "var"]
