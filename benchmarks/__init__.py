"""Benchmarks: speed as ratios within one process. Run as modules, never in tests."""
