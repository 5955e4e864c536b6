"""Two who change one draft at the same moment, in every order: one wins, the other is told, nothing is half done."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from django.db import connection

from prefmh_web.campaigns.models import Campaign, Chain, Judge, State
from tests.console.test_pages import OF_MOLECULES, form
from tests.security.test_limits import all_at_once
from tests.security.world import browser_of
from tests.support.campaigns import create_draft, make_config, make_draft, wait_until_idle

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


@contextmanager
def overtaking(work: Callable[[], object], before: int) -> Iterator[Overtaking]:
    found = Overtaking(work, before)
    with connection.execute_wrapper(found):
        yield found


def every_order(make: Callable[[], Campaign], first: Callable, second: Callable) -> Iterator[tuple[Campaign, object]]:
    """Yield a draft and the answer to `first`, for every statement of it that `second` overtakes it at."""
    for before in range(200):
        campaign = make()
        with overtaking(lambda campaign=campaign: second(campaign), before) as found:
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
        ready, statuses = threading.Barrier(2), {}

        def go(action: str, campaign=campaign, ready=ready, statuses=statuses) -> None:
            ready.wait()
            statuses[action] = post(researcher, campaign, action).status_code

        all_at_once([partial(go, action) for action in ("start", "delete")])
        wait_until_idle()
        assert set(statuses.values()) <= {302, 404}
        left = Campaign.objects.filter(pk=campaign.pk).first()
        assert left is None or (left.is_running and left.states.count() == 12 and left.chains.count() == 2)
