"""The paper's experiments, one file each; `python -m sampler` runs them."""
