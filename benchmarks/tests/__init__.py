"""Laws of the harness itself: `pytest benchmarks`."""
