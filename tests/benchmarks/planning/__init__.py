"""Does the planner say what campaigns will take? `python -m tests.benchmarks.planning` plays campaigns and compares."""
