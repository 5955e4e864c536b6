"""Panels on the researcher's pages: the setup and what it refuses, and what is not possible after Start."""

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Lease, Membership, Side, number_of
from tests.console.test_pages import form
from tests.support.campaigns import (
    everything_in,
    export_to,
    happened,
    link_of,
    make_config,
    make_draft,
    panel_campaign,
    panel_judges,
    set_study,
    sit_down,
)

NAMES = ("Grace Hopper", "Emmy Noether", "Mary Cartwright")


def panel_form(**changes) -> dict:
    of_a_panel = {"panel": "\n".join(NAMES), "judges.0.votes": "1"}
    return form(**of_a_panel | changes)


def test_a_panel_is_set_up_and_its_draft_says_the_price_and_warns_of_few_pairs(signed_in, idle_tasks):
    answer = signed_in.post(reverse("console:create"), panel_form(steps="400"))
    idle_tasks()
    draft = Campaign.objects.get()
    assert [judge["source"] for judge in draft.config_data["judges"]] == [
        {"kind": "panelist", "name": name} for name in NAMES
    ]
    page = signed_in.get(answer.url).content.decode()
    assert "12.5 % of the steps at best" in page
    assert "These objects make only 66 pairs" in page
    assert page.count("Question: Which?; Most votes on a pair (N): 1; Who answers?: One person of a panel<") == 1
    assert "3 people, one answer of each" in page
    setup = signed_in.get(reverse("console:edit", args=[draft.pk])).content.decode()
    assert "\n".join(NAMES) in setup
    assert setup.count('value="Which?"') == 1


def test_a_panel_is_not_sent_by_a_platform_and_has_no_limit(researcher):
    draft = make_draft(researcher, config=make_config(judges=panel_judges(2)))
    for fields, message in (
        ({"recruiter": "prolific", "codes": {"completed": "C"}}, "cannot send its people"),
        ({"recruiter": "anybody", "votes_each": 5}, "Remove the limit"),
    ):
        set_study(draft, fields, ())
        with pytest.raises(lifecycle.NotPossible, match=message):
            lifecycle.start(draft)


def test_nobody_joins_leaves_or_is_removed_after_the_start(researcher, signed_in):
    campaign = panel_campaign(researcher, 2)
    person = sit_down(campaign, 1)
    with pytest.raises(lifecycle.NotPossible, match="another distribution"):
        access.invite(campaign)
    for path, fields in (
        (reverse("console:end-part", args=[campaign.pk, number_of(person)]), {"reason": "other", "text": "away"}),
        (reverse("console:revoke", args=[campaign.pk, link_of(campaign, 1).pk]), {"withdraw": "on"}),
        (reverse("console:revoke", args=[campaign.pk, link_of(campaign, 1).pk]), {}),
    ):
        page = signed_in.post(path, fields, follow=True)
        assert "another distribution" in page.content.decode()
    assert page.redirect_chain == [(reverse("console:edit", args=[campaign.pk]), 302)]
    person.refresh_from_db()
    assert person.removed_at is None
    assert link_of(campaign, 1).revoked_at is None


def answer(person, side: Side | None = None) -> None:
    """Answer what somebody is asked, for the proposal unless a side is given."""
    lease = leases.take(person)
    leases.answer(lease.key, person, side or Side(lease.proposal_side), 1500)


def test_a_panelist_who_sleeps_holds_up_its_chains_and_is_seen_and_reminded(researcher, signed_in, tmp_path):
    campaign = panel_campaign(researcher, 2, names=NAMES[:2], config={"chains": 2})
    Comparison.objects.update(uniform=0.0, log_r0=0.0)
    awake = sit_down(campaign, 1)
    for _ in range(2):
        answer(awake)
    # Both chains wait for the other panelist, and nothing is left for this one.
    assert leases.take(awake) is None
    Comparison.objects.update(opened_at=timezone.now() - timedelta(hours=2))
    Lease.objects.update(ended_at=timezone.now() - timedelta(hours=1))
    path = reverse("console:panel", args=[campaign.pk])
    page = signed_in.get(path).content.decode()
    assert "2 chains</strong> since" in page
    assert "2 pairs wait for your answer since" in page
    assert NAMES[1] in page
    signed_in.post(reverse("console:remind", args=[campaign.pk, 2]))
    assert "1 time, the last time" in signed_in.get(path).content.decode()
    own_page = Client().get(link_of(campaign, 2).get_absolute_url()).content.decode()
    assert "2 pairs wait for your answer." in own_page
    assert not any(name in own_page for name in NAMES)
    export = export_to(campaign, tmp_path)
    assert [said["panelist"] for _, said in happened(export, "reminded")] == [2]
    assert not any(name in everything_in(export) for name in NAMES)
    # Whoever wakes up goes on where they left.
    answer(sit_down(campaign, 2))
    assert leases.take(awake)


def test_only_the_owner_sees_the_names(researcher, django_user_model, client):
    campaign = panel_campaign(researcher, 2, names=NAMES[:2])
    manager = django_user_model.objects.create_user("grete", password="correct horse battery staple")
    access.add_member(campaign, "grete", Membership.Role.MANAGER)
    client.force_login(manager)
    pages = (reverse(f"console:{name}", args=[campaign.pk]) for name in ("panel", "edit"))
    for path in (*pages, campaign.get_absolute_url()):
        page = client.get(path)
        assert page.status_code == 200
        assert not any(name in page.content.decode() for name in NAMES)


def test_a_panel_that_was_ended_early_says_so(researcher, signed_in):
    campaign = panel_campaign(researcher, 2, config={"chains": 2, "steps": 20})
    Chain.objects.update(step=8)
    lifecycle.finish_now(campaign)
    ended = "The campaign was ended before its last step."
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert f"Finished.</strong> {ended}" in " ".join(page.split())
    assert ended in signed_in.get(reverse("console:results", args=[campaign.pk])).content.decode()


def test_the_page_of_a_panel_that_is_over_has_no_link_to_send(researcher, signed_in):
    campaign = panel_campaign(researcher, 2)
    Comparison.objects.update(opened_at=timezone.now() - timedelta(hours=2))
    access.remind(campaign, 1)
    path, links = (
        reverse("console:panel", args=[campaign.pk]),
        [link_of(campaign, panelist).token for panelist in (1, 2)],
    )
    page = signed_in.get(path).content.decode()
    assert all(link in page for link in links)
    lifecycle.finish_now(campaign)
    page = signed_in.get(path).content.decode()
    assert not any(link in page for link in links)
    assert "nobody can join by a link any more" in page
    assert "1 time, the last time" in page
