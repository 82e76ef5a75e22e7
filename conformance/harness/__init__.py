"""Helpers of the suite's tests: short ways to make kernels, comparisons, oracles, verdicts and the report.

The tests are one folder up. Implementations are reached only through `conformance.adapter`.
"""
