"""Story openings: a stochastic grammar written for this project, fifty scenarios in four styles.

The first token of a text is its style, the second its shape: how many sentences, of what kind, with dialogue or
without. Every later choice is made among sentences of that style. So a suffix move mostly keeps the style, and the
shape too, and changes them when the cut falls at the very beginning.

To add a scenario, copy one and follow `Scenario`; to add a style, copy one of the four files of rules.
"""

from __future__ import annotations

from functools import lru_cache

from sampler.spaces.texts.grammar import Grammar
from sampler.spaces.texts.story_openings.bright import BRIGHT
from sampler.spaces.texts.story_openings.elevated import ELEVATED
from sampler.spaces.texts.story_openings.gothic import GOTHIC
from sampler.spaces.texts.story_openings.houses import HOUSES
from sampler.spaces.texts.story_openings.plain import PLAIN
from sampler.spaces.texts.story_openings.roads import ROADS
from sampler.spaces.texts.story_openings.scenario import Scenario
from sampler.spaces.texts.story_openings.towns import TOWNS
from sampler.spaces.texts.story_openings.waters import WATERS

__all__ = ["STORY_SCENARIOS", "STYLES", "Scenario", "story_openings"]

STYLES = ("plain", "bright", "elevated", "gothic")
# Recipes name scenarios by their place here: add at the end, never reorder.
STORY_SCENARIOS: tuple[Scenario, ...] = ROADS + HOUSES + WATERS + TOWNS


@lru_cache(maxsize=8)
def story_openings(temperature: float = 1.0) -> Grammar:
    """Return the grammar under all scenarios. Raises ValueError if the temperature is not positive."""
    rules = {"story": [f"{{{style}}}" for style in STYLES], **PLAIN, **BRIGHT, **ELEVATED, **GOTHIC}
    return Grammar(rules, {scenario.prompt: scenario.slots() for scenario in STORY_SCENARIOS}, temperature=temperature)
