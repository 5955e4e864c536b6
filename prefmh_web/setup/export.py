"""From a campaign, in whatever state, to its setup."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign, Catalog
from prefmh_web.participants import recruiting
from prefmh_web.participants.models import USUAL_PAY, Outcome, Recruitment
from prefmh_web.participants.protocol import Protocol
from prefmh_web.setup import yaml_text
from prefmh_web.setup.model import CONFIG_FIELDS, VERSION, Setup
from prefmh_web.setup.people import People

_SAME_NAMES = set(People.model_fields) - {"codes", "pay", "refused", "protocol"}
_PIECE = 2**20


def setup_of(campaign: Campaign, *, needs_file: bool = True) -> Setup:
    """Return the whole setup of a campaign; of one that was extended, as it stands now.

    Args:
        needs_file: its uploaded file must be there; otherwise a file that is gone is named without its hash.

    Raises:
        NotPossible: its uploaded file is gone.
    """
    config = campaign.config
    recruitment = recruiting.recruitment_of(campaign)
    return Setup.model_validate(
        _in_plain_lines(
            {
                "version": VERSION,
                "name": campaign.name,
                "instructions": campaign.instructions,
                "language": campaign.language,
                "layout": campaign.layout or None,
                "file": _file(campaign, config, needs_file=needs_file),
                **{name: each for name, each in config.model_dump(mode="json").items() if name in CONFIG_FIELDS},
                "seed": config.seed if campaign.is_seed_typed and not campaign.hides_seed else None,
                # Once it has started, a campaign's scorers hold those of its rule, too.
                "scorers": [name for name in campaign.scorer_names.split() if name not in config.rule.scorers],
                "answering": {
                    "seconds": campaign.lease_seconds,
                    "suspend_after_skips": campaign.suspend_after_skips,
                    "suspend_after_reports": campaign.suspend_after_reports,
                },
                "caps": {"cost": campaign.cost_cap, "requests": campaign.request_cap},
                "people": _people(recruitment),
            }
        )
    )


def text_of(setup: Setup | dict[str, Any]) -> str:
    """Return `campaign.yaml`. What is empty, or is not given, is left out; all else is written, so that nothing changes
    should a later version have other defaults.

    Args:
        setup: as the model, or as the plain data that it dumps.
    """
    return yaml_text.write(_without_empty(setup.model_dump(mode="json") if isinstance(setup, Setup) else setup))


def _file(campaign: Campaign, config: sampler.ChainConfig, *, needs_file: bool) -> dict[str, str] | None:
    if config.generates:
        return None
    catalog = Catalog.objects.filter(campaign=campaign).first()
    if catalog is None:
        raise NotPossible("The campaign has no uploaded file.")
    try:
        digest = hashlib.sha256()
        for piece in file_of(catalog):
            digest.update(piece)
    except FileNotFoundError as error:
        if not needs_file:
            return {"name": catalog.filename}
        raise NotPossible("The uploaded file of the campaign is gone from the server's disk.") from error
    return {"name": catalog.filename, "sha256": digest.hexdigest()}


def file_of(catalog: Catalog) -> Iterator[bytes]:
    """Yield the bytes of an uploaded file, a piece at a time.

    Raises:
        FileNotFoundError: it is gone.
    """
    with catalog.file.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _people(recruitment: Recruitment) -> dict[str, Any]:
    refused = recruitment.excluded.order_by("pk") if recruitment.pk else ()
    return {
        **{name: getattr(recruitment, name) for name in _SAME_NAMES},
        "codes": {outcome: code for outcome in Outcome if (code := recruitment.codes.get(outcome))},
        "pay": {
            outcome: recruitment.pay_for(outcome)
            for outcome in Outcome
            if recruitment.pay_for(outcome) != USUAL_PAY[outcome]
        },
        "refused": [{"number": each.pk, "name": each.name} for each in refused],
        "protocol": _protocol(recruitment.parsed_protocol),
    }


def _protocol(protocol: Protocol) -> dict[str, Any]:
    described = protocol.model_dump(mode="json")
    for question in described["questions"]:
        # A database may keep a mapping in an order of its own.
        question["places"] = {
            each: question["places"][each] for each in question["options"] if each in question["places"]
        }
    return described


def _in_plain_lines(value: Any) -> Any:
    """Return a value with the line ends of browsers as everybody else writes them."""
    if isinstance(value, dict):
        return {_in_plain_lines(key): _in_plain_lines(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_in_plain_lines(each) for each in value]
    return value.replace("\r\n", "\n") if type(value) is str else value


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", [], {})}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value
