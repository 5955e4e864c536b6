"""What may change in a started campaign and what may not, whatever is posted; and that each change is an event.

Two who change one draft at the same moment, in every order: one wins, the other is told, nothing is half done.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.models import Campaign, Chain, Judge, ReplyIdentity, State
from prefmh_web.participants import limits
from tests.console.test_pages import OF_MOLECULES, as_shown, form
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.campaigns import create_draft, invitation_path, make_config, make_draft, set_study, started_now
from tests.support.people import WHOLE, arrive, pair_of, prolific, recruited_campaign, vote
from tests.support.process import wait_until_idle
from tests.support.records import checked_export, happened

ONE = make_config(judges=[{"question": "Which is darker?", "votes": 1}], chains=2, steps=10)
PROTOCOL = WHOLE | {
    "practice": [{"first": "A dark night.", "second": "A bright day.", "answer": "first", "if_wrong": "Night."}],
    "gold": [{"first": "A lamp.", "second": "A cave.", "answer": "second"}],
    "gold_share": 0.1,
}
LIMITS = {"votes_per_person": 9, "quota": 5, "budget": 100, "max_minutes": 60, "max_active_minutes": 30}
LIMITS |= {"absent_minutes": 20, "max_votes_per_minute": 30}


@pytest.fixture
def study(researcher):
    return recruited_campaign(researcher, config=ONE, consent="Old text", protocol=PROTOCOL, **LIMITS)


def noted(campaign):
    return campaign.events.filter(kind="config-changed")


def path_of(name: str, campaign) -> str:
    return reverse(f"console:{name}", args=[campaign.pk])


def told(owner, path: str, fields: dict) -> str:
    return owner.post(path, fields, follow=True).content.decode()


@pytest.mark.parametrize(
    ("fields", "path", "old", "new"),
    [
        ({"quota": "7"}, "quota", 5, 7),
        ({"consent": "New text"}, "consent", "Old text", "New text"),
        # What is hidden is told to nobody.
        ({"codes.completed": "N3W"}, "codes", None, None),
    ],
)
def test_of_how_people_come_these_change_and_are_events(owner, study, tmp_path, fields, path, old, new):
    page = path_of("participants", study)
    assert "Saved." in told(owner, page, as_shown(owner, page) | fields)
    [name, typed] = next(iter(fields.items()))
    assert as_shown(owner, page)[name] == [typed]
    said = {"path": f"study.{path}", "old": old, "new": new, "by": "owner"}
    event = noted(study).get()
    assert (event.kind, event.by, event.data) == ("config-changed", study.owner, said)
    # Saved again as it is, nothing has happened.
    told(owner, page, as_shown(owner, page))
    assert noted(study).count() == 1
    checked_export(study, tmp_path)


@pytest.mark.parametrize("is_started", [False, True])
@pytest.mark.parametrize("change", [{"name": "Called otherwise"}, {"status": Campaign.Status.DELETING}])
def test_an_earlier_campaign_has_another_name_or_is_deleted_and_this_one_can_still_be_changed(
    owner, researcher, is_started, change
):
    earlier = recruited_campaign(researcher, config=ONE)
    study = make_draft(researcher, config=ONE)
    set_study(study, {"recruiter": "prolific", "checks_ids": False}, (earlier,))
    if is_started:
        started_now(study)
    Campaign.objects.filter(pk=earlier.pk).update(**change)
    page = path_of("participants", study)
    assert "Saved." in told(owner, page, as_shown(owner, page) | {"codes.completed": "N3W"})
    token = ApiToken.make(researcher, "a program", ApiToken.Scope.RUN)
    whole = {"headers": {"Authorization": f"Bearer {token}"}, "content_type": "application/json"}
    at = f"/api/campaigns/{study.pk}/config"
    config = owner.get(at, headers=whole["headers"]).json()
    assert config["study"]["codes"] == {"completed": "N3W"}
    answer = owner.put(at, json.dumps(config | {"name": "Mine"}), **whole)
    assert (answer.status_code, answer.json().get("name")) == (200, "Mine"), answer.content
    assert "This is a copy of “Mine”" in told(owner, path_of("duplicate", study), {})
    # The control: another one that is not there is refused.
    config["study"]["refused"] = [{"number": earlier.pk, "name": "Never there"}]
    assert owner.put(at, json.dumps(config), **whole).status_code == 422


def opened(owner, path: str) -> dict[str, list[str]]:
    """Return what a browser sends of a page that was opened now, with what the page hides."""
    made_from = re.search(r'name="made_from" value="(\w+)"', owner.get(path).content.decode())
    assert made_from
    return as_shown(owner, path) | {"made_from": [made_from[1]]}


@pytest.mark.parametrize(
    ("page", "first", "second"),
    [
        ("edit", {"judges.0.question": "First?"}, {"steps": "77"}),
        ("participants", {"quota": "7"}, {"return_address": "https://typed.example/"}),
        ("protocol", {"debriefing": "The first."}, {"instructions": "Typed here."}),
    ],
)
def test_a_save_over_another_tabs_is_told_first_and_keeps_what_was_typed(owner, researcher, page, first, second):
    draft = make_draft(researcher, config=ONE)
    set_study(draft, {"recruiter": "open"})
    path = path_of(page, draft)
    one, other = (opened(owner, path) | each for each in (first, second))
    assert "Not saved" not in told(owner, path, one)
    # The same once more, as two clicks send it.
    assert "Not saved" not in told(owner, path, one)
    stored = Campaign.objects.get().typed_config
    refused = owner.post(path, other)
    assert "its fields were saved from another tab" in refused.content.decode()
    assert Campaign.objects.get().typed_config == stored
    [name, typed] = next(iter(second.items()))
    assert refused.context["form"].leaves[name].bound.value() == typed
    # Once they know, they may.
    again = re.search(r'name="made_from" value="(\w+)"', refused.content.decode())
    assert "Not saved" not in told(owner, path, other | {"made_from": again[1]})
    assert as_shown(owner, path)[name] == [typed]


def test_what_another_page_of_the_same_draft_saves_is_no_save_over_this_one(owner, researcher):
    draft = make_draft(researcher, config=ONE)
    set_study(draft, {"recruiter": "open"})
    paths = [path_of(each, draft) for each in ("edit", "participants", "protocol")]
    sent = [opened(owner, each) for each in paths]
    for path, fields, change in zip(paths, sent, ({"steps": "77"}, {"quota": "7"}, {"debriefing": "So."}), strict=True):
        assert "Not saved" not in told(owner, path, fields | change)
    config = Campaign.objects.get().config
    assert (config.steps, config.study.quota, config.study.protocol.debriefing) == (77, 7, "So.")


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"recruiter": "sona"}, "Where do people come from?"),
        ({"budget": "99"}, "Budget, in answers"),
    ],
)
def test_of_how_people_come_the_rest_is_refused_by_name_and_nothing_is_saved(owner, researcher, study, fields, label):
    path, before = path_of("participants", study), Campaign.objects.get(pk=study.pk).typed_config
    page = told(owner, path, as_shown(owner, path) | fields | {"consent": "Another text"})
    assert f"“{label}” cannot change after the start: " in page
    assert "Saved." not in page
    assert Campaign.objects.get(pk=study.pk).typed_config == before
    assert not noted(study).exists()


def test_the_page_shows_what_is_fixed(owner, study):
    leaves = owner.get(path_of("participants", study)).context["form"].leaves
    fixed = {name for name, leaf in leaves.items() if leaf.why_fixed}
    assert fixed == {"recruiter", "parameter", "checks_ids", *LIMITS} - {"quota", "budget"}
    answer = owner.get(path_of("protocol", study))
    assert {name for name, leaf in answer.context["form"].leaves.items() if not leaf.why_fixed} == {"debriefing"}
    assert "“Practice” cannot change after the start: " in answer.content.decode().replace("&#x27;", "'")
    page = owner.get(path_of("edit", study)).content.decode()
    assert "Fixed since the start" in page
    setup = owner.get(path_of("edit", study) + "?all")
    free = {name for name, leaf in setup.context["form"].leaves.items() if not leaf.why_fixed}
    assert free == {"name", "caps.cost", "caps.requests"}
    assert "“Chains at the start” cannot change after the start: " in setup.content.decode()


def test_a_budget_is_neither_given_later_nor_raised_after_the_end(owner, researcher, study):
    without = recruited_campaign(researcher, config=ONE)
    path = path_of("participants", without)
    assert "“Budget, in answers” cannot change" in told(owner, path, as_shown(owner, path) | {"budget": "500"})
    assert not limits_of(without).has_budget
    Campaign.objects.filter(pk=study.pk).update(status=Campaign.Status.FINISHED)
    path = path_of("participants", study)
    assert "“Budget, in answers” cannot be raised" in told(owner, path, as_shown(owner, path) | {"budget": "500"})
    with pytest.raises(lifecycle.NotPossible, match="the campaign is finished"):
        set_study(study, {"budget": 500}, ())
    assert {campaign.config.study.budget for campaign in Campaign.objects.all()} == {100, None}


def test_a_raised_budget_and_further_places_count_at_once(researcher, tmp_path):
    study = recruited_campaign(researcher, config=ONE, budget=20, quota=1)
    anna = arrive(study, prolific("anna"))
    vote(anna, study)
    with transaction.atomic():
        assert not limits.takes_one_more(study)
    ben = Client()
    ben.get(invitation_path(study), prolific("ben"))
    set_study(study, {"budget": 21, "quota": 2}, (), researcher)
    with transaction.atomic():
        assert limits.takes_one_more(study)
    assert ben.post(invitation_path(study)).status_code == 302
    assert pair_of(ben, study)
    checked_export(study, tmp_path)


@pytest.mark.parametrize(
    ("changes", "label"),
    [
        ({"judges.0.question": "Which is brighter?"}, "Questions"),
        ({"chains": "3"}, "Chains at the start"),
        ({"space.catalog.neighbours": "3"}, "What is compared?"),
    ],
)
def test_of_the_setup_nothing_changes_and_the_sentence_names_what(owner, researcher, changes, label):
    owner.post(reverse("console:create"), form())
    wait_until_idle()
    campaign = Campaign.objects.get()
    lifecycle.start(campaign)
    before = Campaign.objects.filter(pk=campaign.pk).values().get()
    judges = list(Judge.objects.values())
    page = told(owner, path_of("edit", campaign), changes)
    assert f"“{label}” cannot change after the start: " in page
    assert Campaign.objects.filter(pk=campaign.pk).values().get() == before
    assert list(Judge.objects.values()) == judges
    assert not campaign.events.exists()


def test_the_name_changes_and_is_an_event(owner, campaign, tmp_path):
    path = path_of("edit", campaign)
    assert "Saved." in told(owner, path, {"name": "Night; and day"})
    told(owner, path, {"name": "Night; and day"})
    assert "This field is required" in told(owner, path, {"name": ""})
    campaign.refresh_from_db()
    assert campaign.name == "Night; and day"
    said = {"path": "name", "old": "Twelve texts", "new": "Night; and day", "by": "owner"}
    assert campaign.events.get(kind="config-changed").data == said
    checked_export(campaign, tmp_path)


def test_bonus_archive_and_an_accepted_model_are_events(owner, researcher, campaign, tmp_path):
    study = recruited_campaign(researcher, config=ONE)
    vote(arrive(study, prolific("anna")), study)
    number = 1
    for amount in ("1.50", "1.50", ""):
        owner.post(reverse("console:bonus", args=[study.pk, number]), {"bonus": amount})
    lifecycle.pause(study)
    for _ in range(2):
        owner.post(path_of("archive", study))
    owner.post(path_of("unarchive", study))
    by = {"by": "owner"}
    kinds = [("bonus-set", by), ("bonus-set", by), ("paused", {}), ("archived", by), ("unarchived", by)]
    path = checked_export(study, tmp_path)
    assert [each for each in happened(path) if each[0] != "started"] == kinds
    judge = campaign.judges.get(index=1)
    Judge.objects.filter(pk=judge.pk).update(stopped_because="another model answers")
    ReplyIdentity.objects.create(judge=judge, model="other")
    owner.post(path_of("accept-model", campaign))
    owner.post(path_of("accept-model", campaign))
    assert list(campaign.events.values_list("kind", "data")) == [("model-accepted", {"judges": "1", "by": "owner"})]


def test_the_caps_of_a_finished_campaign_do_not_change(owner, study):
    # The page was open when the campaign finished.
    Campaign.objects.filter(pk=study.pk).update(status=Campaign.Status.FINISHED)
    page = told(owner, path_of("edit", study), {"name": study.name, "caps.requests": "9"})
    assert "Only the caps of a running or paused campaign" in page


GENERATED = make_config(space={"kind": "images"}, kernel={"kind": "independent"})


def post(user, campaign: Campaign, action: str, fields: dict | None = None):
    """Send a form in a browser of its own; a failure is a page with status 500."""
    browser = browser_of(user)
    browser.raise_request_exception = False
    return browser.post(f"{campaign.get_absolute_url()}{action}/", fields or {})


class Overtaking:
    """Does its work once, before the given statement of this thread that stands in no transaction."""

    def __init__(self, work: Callable[[], object], before: int) -> None:
        self._work, self._left, self.happened = work, before, False

    def __call__(self, execute, sql, params, many, context):
        if not self.happened and not connection.in_atomic_block:
            self._left -= 1
            if self._left < 0:
                self.happened = True
                # On another thread, with a database connection of its own.
                all_at_once([self._work])
        return execute(sql, params, many, context)


def every_order(make: Callable[[], Campaign], first: Callable, second: Callable) -> Iterator[tuple[Campaign, object]]:
    """Yield a draft and the answer to `first`, for every statement of it that `second` overtakes it at."""
    for before in range(200):
        campaign = make()
        found = Overtaking(partial(second, campaign), before)
        with connection.execute_wrapper(found):
            answer = first(campaign)
        wait_until_idle()
        yield campaign, answer
        if not found.happened:
            return
    raise AssertionError("more statements than anybody thought of")


@pytest.mark.parametrize("config", [make_config(chains=1), GENERATED | {"chains": 1}], ids=["file", "generated"])
@pytest.mark.parametrize("action", ["start", "setup", "members", "delete"])
def test_what_is_asked_of_a_draft_that_is_being_deleted_is_told_so(
    researcher, idle_tasks, django_user_model, action, config
):
    django_user_model.objects.create_user("friend")
    fields = {"members": {"username": "friend", "role": "viewer"}, "setup": form(**OF_MOLECULES)}.get(action)

    def make() -> Campaign:
        if config["space"]["kind"] == "catalog":
            return make_draft(researcher, config=config)
        return create_draft(owner=researcher, name="Patterns", config=config)

    statuses = set()
    for campaign, answer in every_order(
        make, lambda draft: post(researcher, draft, action, fields), lambda draft: post(researcher, draft, "delete")
    ):
        statuses.add(answer.status_code)
        # Both done: then the one came whole before the other.
        left = Campaign.objects.filter(pk=campaign.pk).first()
        if left is None:
            assert not Chain.objects.filter(campaign=campaign.pk).exists()
            assert not Judge.objects.filter(campaign=campaign.pk).exists()
            assert not State.objects.filter(campaign=campaign.pk).exists()
        elif action == "start":
            assert left.is_running
            assert left.chains.count() == 1
    # 302 with the reason on the next page; 404 where the draft had gone before it was looked up.
    assert statuses <= {302, 404}


def test_a_draft_is_changed_while_it_is_being_started(researcher, idle_tasks):
    """The config that runs is the one whose objects are there, whichever of the two came first."""
    statuses = set()
    for campaign, answer in every_order(
        lambda: make_draft(researcher, config=make_config(chains=1)),
        lambda draft: post(researcher, draft, "start"),
        lambda draft: post(researcher, draft, "setup", form(**OF_MOLECULES)),
    ):
        statuses.add(answer.status_code)
        left = Campaign.objects.get(pk=campaign.pk)
        if left.is_running:
            assert (not left.config.generates) == (left.states.filter(weight__isnull=False).count() == 12)
            assert left.judges.count() == len(left.config_data["judges"])
    assert statuses == {302}


def test_start_and_delete_at_once_leave_a_whole_campaign_or_none(researcher, idle_tasks):
    """Truly at once, a few times: what the orders above cannot reach lies inside the transactions."""
    for _ in range(6):
        campaign = make_draft(researcher, config=make_config(chains=2))
        statuses = {}

        def go(action: str, campaign=campaign, statuses=statuses) -> None:
            statuses[action] = post(researcher, campaign, action).status_code

        all_at_once([partial(go, action) for action in ("start", "delete")])
        wait_until_idle()
        assert set(statuses.values()) <= {302, 404}
        left = Campaign.objects.filter(pk=campaign.pk).first()
        assert left is None or (left.is_running and left.states.count() == 12 and left.chains.count() == 2)
