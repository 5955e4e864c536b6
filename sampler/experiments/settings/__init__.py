"""The settings of the paper's experiments, a file for each; to add one, write its file and add it to `EXPERIMENTS`."""

from __future__ import annotations

from sampler.experiments.settings.images import IMAGES
from sampler.experiments.settings.molecules import MOLECULES
from sampler.experiments.settings.stories import STORIES
from sampler.experiments.settings.translation import TRANSLATION
from sampler.experiments.settings.values import Experiment

EXPERIMENTS: dict[str, Experiment] = {each.name: each for each in (STORIES, IMAGES, MOLECULES, TRANSLATION)}
"""By the name that the command takes."""
