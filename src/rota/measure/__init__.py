"""Measuring: benchmarks, and what they share with the lab: reports, private servers, processes."""
