"""The paper's experiments: the synthetic one, the four with models, and what they are evaluated by."""

from sampler.experiments import outputs

__all__ = ["outputs"]
