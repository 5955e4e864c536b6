"""What a researcher does in a started campaign is in events.csv, and nothing of it names anybody."""

import re
from decimal import Decimal

from django.contrib.auth import get_user_model

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.models import Event, Membership
from tests.support.campaigns import (
    assert_replay_passes,
    everything_in,
    export_to,
    happened,
    make_draft,
    set_caps,
    set_study,
    table,
)


def test_each_change_is_a_row_in_the_order_of_time(campaign, researcher, tmp_path):
    get_user_model().objects.create_user("grace")
    lifecycle.pause(campaign)
    set_caps(campaign, researcher, cost_cap=Decimal(5), request_cap=None)
    lifecycle.resume(campaign)
    changes.extend(campaign, 3, researcher)
    link = access.invite(campaign, is_single_use=True)
    access.revoke(link)
    member = access.add_member(campaign, "grace", Membership.Role.VIEWER)
    access.remove_member(member)
    before = campaign.config_data["steps"] - 3
    path = export_to(campaign, tmp_path)
    rows = table(path, "events.csv")
    assert happened(path) == [
        ("started", {"seed_hash": campaign.seed_hash}),
        ("paused", {}),
        ("config-changed", {"path": "caps.cost", "old": None, "new": 5.0, "by": "owner"}),
        ("resumed", {}),
        ("extended", {"steps_before": before, "steps_after": before + 3, "by": "owner"}),
        ("link-made", {"link": 2, "people": "one"}),
        ("link-closed", {"link": 2}),
        ("member-set", {"role": "viewer"}),
        ("member-removed", {"role": "viewer"}),
    ]
    assert [row["number"] for row in rows] == list("123456789")
    assert {row["voter"] for row in rows} == {""}
    assert [row["at"] for row in rows] == sorted(row["at"] for row in rows)
    held = everything_in(path)
    # Whole words: hashes have all kinds of letters in a row.
    assert not [word for word in ("grace", researcher.username, link.token) if re.search(rf"\b{word}\b", held)]
    assert_replay_passes(path)


def test_codes_are_changed_by_name_only(campaign, tmp_path):
    for codes in ({"completed": "SECRET99"}, {"completed": "SECRET99"}):
        set_study(campaign, {"codes": codes}, ())
    path = export_to(campaign, tmp_path)
    said = {"path": "study.codes", "old": None, "new": None}
    assert happened(path, "config-changed") == [("config-changed", said)]
    assert "SECRET99" not in everything_in(path)


def test_a_draft_has_no_events(researcher, idle_tasks):
    draft = make_draft(researcher)
    set_study(draft, {"codes": {"completed": "A1"}}, ())
    assert not Event.objects.exists()
