"""A duplicate: the same setup under a name and a seed of its own."""

import pytest

import sampler
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.setup.duplicate import duplicate
from prefmh_web.setup.export import file_of, setup_of
from tests.setup.test_round_trip import assert_same
from tests.support.campaigns import SETUPS, wait_until_idle


def copied(campaign, owner) -> Campaign:
    made = duplicate(campaign, owner)
    wait_until_idle()
    return Campaign.objects.get(pk=made.pk)


@pytest.mark.parametrize("name", SETUPS)
def test_a_duplicate_has_the_same_setup_and_its_own_name_and_seed(name, researcher):
    before = SETUPS[name](researcher)
    after = copied(before, researcher)
    assert after.is_draft
    assert after.name == f"Copy of {before.name}"
    assert after.recipe["seed"] != before.recipe["seed"]
    assert not after.is_seed_typed
    assert setup_of(after) == setup_of(before).model_copy(
        update={"name": after.name, "seed": None, "judges": sampler.unnamed(setup_of(before).judges)}
    )
    # Its name, its seed and a panel's names apart, as its rows say it.
    unnamed = sampler.unnamed_recipe(before.recipe)
    Campaign.objects.filter(pk=before.pk).update(name=after.name, is_seed_typed=False, recipe=unnamed)
    before.refresh_from_db()
    assert_same(before, after)


def test_each_has_its_own_file(researcher):
    before = SETUPS["listed"](researcher)
    after = copied(before, researcher)
    assert after.catalog.file.name != before.catalog.file.name
    content = b"".join(file_of(before.catalog))
    after.catalog.file.delete()
    assert b"".join(file_of(before.catalog)) == content


def test_what_another_owner_lacks_is_told_and_nothing_is_made(researcher, django_user_model):
    before = SETUPS["prolific"](researcher)
    count = Campaign.objects.count()
    with pytest.raises(NotPossible, match="has no started campaign"):
        duplicate(before, django_user_model.objects.create_user("bo"))
    assert Campaign.objects.count() == count


def test_of_a_file_that_is_gone_nothing_is_made(researcher):
    before = SETUPS["listed"](researcher)
    before.catalog.file.storage.delete(before.catalog.file.name)
    with pytest.raises(NotPossible, match="gone from the server's disk"):
        duplicate(before, researcher)
    assert Campaign.objects.count() == 1
