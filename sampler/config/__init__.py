"""The config: everything that fixes a campaign, checked before anything runs.

A config is plain JSON. `parse_config` refuses a bad one with every field's path and what would be accepted;
`ChainConfig.build` returns the plan the chain follows, joined with the catalog if the config speaks of one.

config      the config, and what follows from its parts together
parsing     from JSON to a config
misfits     where parts do not fit together, though each is what it should be
problems    how all that is told
"""

from sampler.config.config import LONGEST_CHAIN, MOST_CHAINS, MOST_STEPS, ChainConfig
from sampler.config.misfits import misfits
from sampler.config.parsing import demand_sound, parse_config, validated
from sampler.config.problems import ConfigError, ConfigProblem, problems_in

__all__ = [
    "LONGEST_CHAIN",
    "MOST_CHAINS",
    "MOST_STEPS",
    "ChainConfig",
    "ConfigError",
    "ConfigProblem",
    "demand_sound",
    "misfits",
    "parse_config",
    "problems_in",
    "validated",
]
