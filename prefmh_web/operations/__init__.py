"""Running an installation: probes, metrics, logs, and a doctor that says what is stuck and why."""
