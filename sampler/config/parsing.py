"""From the JSON of a config to the config, or to every reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from sampler.config.config import ChainConfig
from sampler.config.misfits import misfits, unbalanced, wrong_target
from sampler.config.problems import ConfigError, problems_in


def parse_config(data: Mapping[str, Any]) -> ChainConfig:
    """Return the config that `data` (parsed JSON) describes.

    Raises:
        ConfigError: with every problem found.
    """
    config = validated(data)
    demand_sound(config)
    return config


def demand_sound(config: ChainConfig) -> None:
    """Demand that the parts of a config fit together.

    Raises:
        ConfigError: with every problem found.
    """
    if problems := [*misfits(config), *unbalanced(config), *wrong_target(config)]:
        raise ConfigError(problems)


def validated(data: Mapping[str, Any]) -> ChainConfig:
    """Return the config whose fields each are what they should be; they may not fit together yet.

    Raises:
        ConfigError: with every problem found.
    """
    try:
        return ChainConfig.model_validate(data)
    except ValidationError as error:
        raise ConfigError(problems_in(error, data)) from error
