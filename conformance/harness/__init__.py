"""What the suite's tests stand on: kernels by recipe, comparing, recording of verdicts, the report.

Tests stand one folder up; implementations are reached through `conformance.adapter` alone.
"""
