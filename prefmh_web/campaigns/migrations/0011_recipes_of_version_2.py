"""Recipes of version 1 become version 2 where they mean the same there; `Campaign.parsed_recipe` says what becomes of others."""

from collections import Counter

from django.db import migrations

_FIXED = ("proposal-first", "proposal-second")


def carry_over(apps, schema_editor):
    """Rewrite the version of drafts, which have no record yet, and of campaigns whose record reads the same."""
    campaigns = apps.get_model("campaigns", "Campaign").objects
    for campaign in campaigns.only("pk", "recipe", "status").iterator():
        if campaign.recipe.get("version") == 1 and (campaign.status == "draft" or _means_the_same(campaign.recipe)):
            campaigns.filter(pk=campaign.pk).update(recipe=campaign.recipe | {"version": 2})


def _means_the_same(recipe):
    """True unless ratings are on the scale that version 1 had, or a judge of one order is without an equal twin."""
    rule = recipe.get("rule", {})
    if rule.get("kind") == "pointwise":
        return rule.get("form") not in ("separate", "joint")
    first, second = (Counter(_asked(judge) for judge in recipe["judges"] if judge.get("order") == o) for o in _FIXED)
    return first == second


def _asked(judge):
    source = judge.get("source", {"kind": "people"})
    return judge["question"], judge["budget"], tuple(sorted(source.items()))


class Migration(migrations.Migration):

    dependencies = [
        ('campaigns', '0010_judges_frozen_and_recorded'),
    ]

    # Backwards nothing is rewritten: what has started since means what version 2 says.
    operations = [migrations.RunPython(carry_over, migrations.RunPython.noop)]
