"""What packages add to those below them, by dotted name.

A lower package imports no upper one, and `django.setup()` loads none of these: each is imported where it is used.
"""

from collections.abc import Callable
from typing import Any

from django.utils.module_loading import import_string

START_CHECKS = ("prefmh_web.participants.limits.require_startable",)
"""Called with a draft before it starts; each raises NotPossible where it cannot."""
STARTED = ("prefmh_web.participants.consent.keep",)
"""Called with a campaign, in the transaction in which it starts."""
EXTENSION_CHECKS = ("prefmh_web.participants.limits.require_covers",)
"""Called with a campaign, and the steps that are to be added; each raises NotPossible where it cannot be longer."""
CHANGES = ("prefmh_web.participants.consent.keep",)
"""Called with a campaign whose configuration was changed, in the transaction of the change."""
DELETIONS = ("prefmh_web.participants.erasure.forget_all",)
"""Called with a campaign that is being deleted, before its own rows go; perhaps more than once."""
RECORD_TABLES = ("prefmh_web.participants.payments.tables_of_people",)
"""Called with a campaign; each yields further tables of its export, with their rows."""
RECORD_EVENTS = ("prefmh_web.participants.payments.consents",)
"""Called with a campaign; each yields further events of its export, as `campaigns.record.rows.Happened`."""
REMOVALS = {"sessions": "prefmh_web.voting.admission.forget"}
"""By what they remove of people who are forgotten: called with a campaign and voters' numbers; returns how much."""
LARGE_BODIES = {r"^/api/campaigns(/\d+/config)?$": "prefmh_web.api.access.may_upload"}
"""By a pattern of paths that take a body as large as a setup: says, by a request's headers, whether a sender may."""


def call(names: tuple[str, ...], *arguments: object) -> None:
    """Call what dotted names stand for, one after the other."""
    for each in load(names):
        each(*arguments)


def load(names: tuple[str, ...]) -> list[Callable[..., Any]]:
    """Return what dotted names stand for."""
    return [import_string(name) for name in names]
