"""The web application around `sampler`. Follow one vote: docs/architecture.md."""
