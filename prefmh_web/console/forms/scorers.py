"""Which scorers a setup offers, and whether those that were chosen fit its objects."""

from prefmh_web.campaigns.models import Campaign
from prefmh_web.objects import OBJECT_KINDS
from prefmh_web.scorers import offered
from prefmh_web.setup.fitting import misfit_scorer


def scorer_choices(campaign: Campaign | None) -> list[tuple[str, str]]:
    """Return every scorer of this site with the objects that it is for; those of a draft too that are gone."""
    kinds: dict[str, list[str]] = {}
    for kind in OBJECT_KINDS.values():
        for name in offered(kind.name):
            kinds.setdefault(name, []).append(kind.nouns)
    gone = [name for name in (campaign.config.scorers if campaign else ()) if name not in kinds]
    return [
        *((name, f"{name} ({_objects(nouns)})") for name, nouns in kinds.items()),
        *((name, f"{name} (not in SCORERS any more)") for name in gone),
    ]


def misfit(scorer_names: str, objects: str) -> str:
    """Return why scorers cannot be used with a kind of object; nothing where they can.

    Args:
        scorer_names: with spaces between them.
        objects: a name of `OBJECT_KINDS`.
    """
    name = misfit_scorer(scorer_names.split(), objects)
    if not name:
        return ""
    nouns, found = OBJECT_KINDS[objects].nouns, offered(objects)
    return f"“{name}” is not offered for {nouns}. Untick it, or choose among: {', '.join(found)}."


def _objects(nouns: list[str]) -> str:
    return "any object" if len(nouns) == len(OBJECT_KINDS) else ", ".join(nouns)
