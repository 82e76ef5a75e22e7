"""Measuring and checking kernels and functions: `ct.testing`.

In: functions to call, references. Out: times, or an AssertionError that says where a result is wrong.
"""

from cutile.functions.bench import do_bench
from cutile.functions.profiling import Profile, nvtx, profile
from cutile.testing.matching import Match, Matched, assert_matches
from cutile.testing.repeating import assert_repeatable

__all__ = ["Match", "Matched", "Profile", "assert_matches", "assert_repeatable", "do_bench", "nvtx", "profile"]
