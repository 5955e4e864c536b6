"""Texts that a language model writes, behind an endpoint or run by the site: many chains' proposals in one call."""

from prefmh_web.campaigns.proposals.backends.backend import Backend


class ServedTexts(Backend):
    """Proposals whose kernel calls a language model (`endpoints.writers`)."""

    is_slow = True
    batch_size = 64
