"""Kernels: one file a proposal distribution q(x'|x), each with the config that names it.

To add one: copy a file, give its config a new `kind` and its spaces (`moves_in`), and add the config to
`ComponentConfig` in `mixture.py`. The shared checks of `tests/support/sampling.py` then want a small instance of it.
`learned_fragments.py` has no config: its editor learns while chains run, so the lockstep runner builds it.
"""

from typing import Annotated, get_args

from pydantic import Field

from sampler.kernels.mixture import ComponentConfig, MixtureConfig
from sampler.kernels.walk import WalkConfig

KernelConfig = Annotated[ComponentConfig | MixtureConfig | WalkConfig, Field(discriminator="kind")]

MOVES_IN: dict[str, tuple[str, ...]] = {
    config.model_fields["kind"].default: config.moves_in for config in get_args(ComponentConfig)
}
"""The kinds of space by the kind of kernel."""
