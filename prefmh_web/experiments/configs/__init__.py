"""What the campaigns of each experiment run: one file for each, registered in `CONFIGS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prefmh_web.experiments.configs import images, molecules, stories, translation
from prefmh_web.experiments.configs.part import Part

CONFIGS: Mapping[str, Callable[[Part], dict[str, Any]]] = {
    "stories": stories.config,
    "images": images.config,
    "molecules": molecules.config,
    "translation": translation.config,
}
"""By the experiment's name, what makes the config of one of its campaigns."""

__all__ = ["CONFIGS", "Part"]
