"""A configuration comes back as it was from a file and from the API, and what is hidden is in neither for others.

Copies: a duplicate, which is the same setup under a name and a seed of its own, and a pilot for a few people.
"""

import json

import pytest
from django.urls import reverse
from hypothesis import HealthCheck, given, settings

import sampler
from prefmh_web import config_files, drafts
from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Campaign, Membership, NotPossible
from prefmh_web.config import CampaignConfig, public
from prefmh_web.config_files import NAME, config_in, config_of, file_of
from prefmh_web.drafts import duplicate
from tests.drafts.configs import CONFIGS, MADE, configs, draft, imported, setup, written_file
from tests.support.campaigns import started_now
from tests.support.people import recruited_campaign
from tests.support.process import wait_until_idle
from tests.support.records import everything_in, export_to

any_config = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
SECRET = "SECRET-{}"
STUDY = {
    "codes": {"completed": SECRET.format(1), "withdrawn": SECRET.format(2)},
    "return_address": "https://x.org/SECRET-3?c={code}",
}
COMPREHENSION = {"text": "Which?", "options": ["first one", "SECRET-4"], "right": "SECRET-4"}


@any_config
@given(configs())
def test_a_configuration_comes_back_from_its_file(config):
    assert config_in(config_files.text_of(config)) == config
    # The control: another one is another file.
    assert config_in(config_files.text_of(config.model_copy(update={"steps": config.steps + 1}))) != config


@any_config
@given(configs())
def test_others_see_all_but_what_is_hidden_which_is_named(config):
    told = public(config, is_over=False)
    hidden = told.pop("hidden", [])
    whole = config.model_dump(mode="json", exclude_none=True)
    for path in hidden:
        assert path.startswith(("study.codes.", "study.return_address", "study.protocol."))
    if not hidden and all(judge.source.kind != "panelist" for judge in config.judges):
        assert told == whole
    assert not any(name in json.dumps(told) for name in ("Ada Lovelace",))
    assert bool(config.study.codes) == any(path.startswith("study.codes.") for path in hidden)


@pytest.mark.parametrize("name", [*CONFIGS, *MADE])
def test_a_campaign_comes_back_from_its_file_as_the_same_bytes(name, researcher):
    before = setup(researcher, name)
    file = written_file(before)
    after = imported(file, researcher)
    assert written_file(after) == file
    assert (after.is_draft, after.is_seed_typed) == (True, before.is_seed_typed and not before.hides_seed)


@pytest.mark.parametrize("name", ["texts", "molecules", "prolific", "panel", "written"])
def test_the_owner_reads_and_changes_the_whole_by_the_api_and_a_viewer_sees_what_is_public(
    name, researcher, client, django_user_model
):
    campaign = setup(researcher, name)
    address, whole = f"/api/campaigns/{campaign.pk}/config", {"Authorization": f"Bearer {token_of(researcher)}"}
    told = client.get(address, headers=whole).json()
    assert CampaignConfig.model_validate(told) == config_files.config_of(campaign)
    sent = client.put(address, json.dumps(told | {"name": "Other"}), content_type="application/json", headers=whole)
    assert (sent.status_code, sent.json().get("name")) == (200, "Other"), sent.content
    wrong = client.put(address, json.dumps(told | {"chains": 0}), content_type="application/json", headers=whole)
    assert (wrong.status_code, wrong.json()["problems"][0]["path"]) == (422, "chains")
    viewer = django_user_model.objects.create_user("bo")
    access.add_member(campaign, "bo", Membership.Role.VIEWER)
    seen = client.get(address, headers={"Authorization": f"Bearer {token_of(viewer)}"}).json()
    campaign.refresh_from_db()
    assert seen == json.loads(json.dumps(campaign.public_config))
    assert not {"Ada Lovelace", "C0MPLETE"} & set(json.dumps(seen).split('"'))


def token_of(user) -> str:
    return ApiToken.make(user, "a program", ApiToken.Scope.RUN)


def test_no_export_and_no_page_for_others_has_what_is_hidden(researcher, tmp_path, caplog):
    study = recruited_campaign(researcher, **STUDY, protocol={"comprehension": [COMPREHENSION]})
    told = everything_in(export_to(study, tmp_path))
    assert [each for each in ("SECRET-1", "SECRET-2", "SECRET-3", '"right": "SECRET-4"') if each in told] == []
    assert "SECRET" not in caplog.text
    Campaign.objects.filter(pk=study.pk).update(status=Campaign.Status.FINISHED)
    over = everything_in(export_to(Campaign.objects.get(pk=study.pk), tmp_path))
    assert '"right": "SECRET-4"' in over
    assert "SECRET-1" not in over


def test_a_record_names_what_it_leaves_out_and_can_be_read_again(researcher, tmp_path):
    study = recruited_campaign(researcher, "link", parameter="pid", **STUDY)
    found, missing = [], public(study.typed_config, is_over=False)
    assert missing["hidden"] == ["study.codes.completed", "study.codes.withdrawn", "study.return_address"]
    read = config_in(json.dumps(missing), found.append)
    assert [each.path for each in found] == missing["hidden"]
    assert read.study.codes == {}


def test_two_campaigns_of_one_file_draw_their_own_seeds(researcher):
    file = written_file(draft(researcher, "base"))
    assert imported(file, researcher).seed != imported(file, researcher).seed


def test_the_owners_file_names_a_panel(researcher):
    panel = draft(researcher, "panel")
    assert "name: Ada Lovelace" in config_files.text_of(config_files.config_of(panel))
    assert NAME == "campaign.yaml"
    assert [*drafts.warnings(panel.typed_config, researcher)] == []


@pytest.mark.parametrize("name", ["texts", "list", "panel", "prolific", "quest"])
def test_a_duplicate_has_the_same_setup_and_its_own_name_seed_and_file(name, researcher, signed_in):
    before = setup(researcher, name)
    page = signed_in.post(reverse("console:duplicate", args=[before.pk]), follow=True).content.decode()
    assert f"This is a copy of “{before.name}”" in page
    wait_until_idle()
    after = Campaign.objects.latest("pk")
    assert (after.name, after.is_draft, after.is_seed_typed) == (f"Copy of {before.name}", True, False)
    assert after.seed != before.seed
    assert config_of(after) == config_of(before).model_copy(
        update={"name": after.name, "seed": None, "judges": sampler.unnamed(config_of(before).judges)}
    )
    if before.config.file:
        content = b"".join(file_of(before.catalog))
        after.catalog.file.delete()
        assert b"".join(file_of(before.catalog)) == content


def test_what_another_owner_lacks_is_told_and_nothing_is_made(researcher, django_user_model):
    before = setup(researcher, "prolific")
    count = Campaign.objects.count()
    with pytest.raises(NotPossible, match="has no started campaign"):
        duplicate(before, django_user_model.objects.create_user("bo"))
    assert Campaign.objects.count() == count


def test_of_a_file_that_is_gone_nothing_is_made(researcher):
    before = draft(researcher, "list")
    before.catalog.file.storage.delete(before.catalog.file.name)
    with pytest.raises(NotPossible, match="gone from the server's disk"):
        duplicate(before, researcher)
    assert Campaign.objects.count() == 1


@pytest.mark.parametrize("name", ["texts", "whole"])
def test_a_pilot_has_the_config_of_its_campaign_but_for_its_size(name, researcher, signed_in):
    campaign = setup(researcher, name)
    assert "Run a pilot" in signed_in.get(campaign.get_absolute_url()).content.decode()
    address = reverse("console:run-pilot", args=[campaign.pk])
    told = signed_in.post(address, {"people": 0, "votes_per_person": 5}, follow=True).content.decode()
    assert "No pilot was made" in told
    assert Campaign.objects.count() == 1
    answer = signed_in.post(address, {"people": 4, "votes_per_person": 12})
    wait_until_idle()
    found = Campaign.objects.get(name=f"Pilot of {campaign.name}")
    assert answer.url == found.get_absolute_url()
    assert found.is_draft
    assert found.seed != campaign.seed
    before, after = config_of(campaign), config_of(found)
    same = {"name", "study", "seed"}
    assert after.model_dump(exclude=same) == before.model_dump(exclude=same)
    recruitment = found.config.study
    assert (recruitment.quota, recruitment.votes_per_person, recruitment.budget) == (4, 12, None)
    started_now(found)
    campaign.refresh_from_db()
    assert campaign.is_draft


@pytest.mark.parametrize("name", ["base", "panel"])
def test_no_pilot_is_made_where_no_crowd_votes(name, researcher, client):
    campaign = setup(researcher, name)
    with pytest.raises(NotPossible, match="No crowd votes"):
        drafts.pilot(campaign, researcher, 5, 30)
    client.force_login(researcher)
    assert "Run a pilot" not in client.get(campaign.get_absolute_url()).content.decode()
