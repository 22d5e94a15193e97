"""Measure anybatch beside its peers: `python -m benchmarks --help`."""
