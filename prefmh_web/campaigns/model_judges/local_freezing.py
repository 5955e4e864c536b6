"""What a model that the site runs itself is fixed as when its campaign starts: which weights, read how, in which words.

loaded        the model of a recipe's judge, loaded once in a process
identity_of   its name with the hash of its files, which votes name: other weights are another identity
frozen_as     all that is fixed, as plain data, stored with the judge and exported in judges.json
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

import sampler
from prefmh_web.campaigns.model_judges.freezing import AT_THE_START, prompt_as_of_now
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.local.models import JudgeHere, local_judge


def loaded(campaign: Campaign, place: int) -> JudgeHere:
    """Return the model of one of a recipe's judges.

    Raises:
        Unable: it cannot be run here; the reason says why.
    """
    source = source_of(campaign, place)
    try:
        return local_judge(source.model, raw=source.raw)
    # PyTorch says by a RuntimeError that the accelerator's memory is full, or that there is no accelerator.
    except (ImportError, OSError, ValueError, MemoryError, RuntimeError) as error:
        raise Unable(f"{source.model} cannot be run here: {error}") from error


def source_of(campaign: Campaign, place: int) -> sampler.LocalSource:
    """Return how a recipe names the model.

    Raises:
        TypeError: the judge is none that the site runs itself.
    """
    source = campaign.parsed_recipe.judges[place].source
    if not isinstance(source, sampler.LocalSource):
        raise TypeError(f"judge {place} is no model that the site runs itself")
    return source


def identity_of(name: str, model: JudgeHere) -> Identity:
    """Return what votes say that they are from."""
    return Identity(name, f"sha256:{model.fingerprint}")


def frozen_as(campaign: Campaign, place: int, model: JudgeHere) -> dict[str, Any]:
    """Return what a campaign's judge is, as plain data."""
    source, judge = source_of(campaign, place), model.judge
    return {
        "frozen": AT_THE_START,
        "frozen_at": timezone.now().isoformat(timespec="seconds"),
        "local_model": source.model,
        "files_sha256": model.fingerprint,
        "computed_in": judge.computes_in,
        "temperature": source.temperature,
        "raw": source.raw,
        "chat_template": not judge.is_raw,
        "label_tokens": {label: list(tokens) for label, tokens in judge.labels.items()},
        "prompt": prompt_as_of_now(campaign, campaign.parsed_recipe, place).stored(),
    }
