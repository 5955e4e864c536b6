"""How many statements each page and each socket message costs, pinned: a change that adds one is seen here.

Transaction control (BEGIN, SAVEPOINT, ...) is left out. The socket's sync code runs in the test's own thread, so its
statements are seen.
"""

import math

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.test.utils import CaptureQueriesContext

from prefmh_web.campaigns.frozen import limits_of
from prefmh_web.campaigns.models import Comparison, Lease, Side, Vote
from prefmh_web.voting import screens
from tests.support.campaigns import invitation_path, make_config, start_campaign
from tests.support.people import PageSocket
from tests.support.process import wait_until_idle
from tests.voting.test_socket import lease_in


class Statements(CaptureQueriesContext):
    """Counts the statements that ask or change something."""

    KINDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")

    def __len__(self) -> int:
        return sum(query["sql"].lstrip().startswith(self.KINDS) for query in self.captured_queries)


@pytest.fixture(autouse=True)
def progress_of_every_screen(monkeypatch):
    """Nothing is remembered from the screen before: each costs what the first of its second does."""
    monkeypatch.setattr(screens, "ASKED_EVERY_S", 0)


@pytest.fixture
def campaign(researcher):
    """Started here and not copied: this process remembers of it what the start leaves in memory."""
    return start_campaign(researcher)


def cost(call) -> int:
    with Statements(connection) as statements:
        call()
    wait_until_idle()
    return len(statements)


def test_the_voters_pages(client, campaign):
    link = invitation_path(campaign)
    # What a process remembers of a campaign once it has looked.
    limits_of(campaign)
    assert cost(lambda: client.get(link)) == 1
    assert cost(lambda: client.post(link)) == 5
    assert cost(lambda: client.get(link)) == 3
    # PostgreSQL makes the changes of a lease in one statement.
    assert cost(lambda: client.get(f"{link}vote/")) == (11 if connection.vendor == "sqlite" else 10)
    # The pair is there already.
    assert cost(lambda: client.get(f"{link}vote/")) == 7


def test_the_researchers_pages(client, researcher, campaign):
    client.force_login(researcher)
    limits_of(campaign)
    # Of these, three are for the cards: the first chains, their objects and the people, of all campaigns at once.
    assert cost(lambda: client.get("/")) == 8
    # Of these, four are for the trace: scorers, chains, steps and measures that were not read before. One reads the
    # objects of the chains that are shown, so that those of thousands of others are not read.
    assert cost(lambda: client.get(campaign.get_absolute_url())) == 17
    assert cost(lambda: client.get("/campaigns/new/")) == 5


def test_a_list_of_twenty_costs_what_a_list_of_one_does(client, researcher, campaign):
    client.force_login(researcher)
    one = cost(lambda: client.get("/"))
    type(campaign).objects.bulk_create(
        type(campaign)(owner=researcher, name=f"{number}", config_data=campaign.config_data) for number in range(20)
    )
    assert cost(lambda: client.get("/")) == one


# By the judge's N: a vote that leaves its step open, and one that decides it and opens the next one. A
# process's first vote reads the catalog too, and a statement more notes when the last room is given
# away. Beside these, BEGIN and COMMIT; and one of each is for the progress bar, asked for once a second only.
PER_VOTE = {3: {11}, 1: {13, 14}}
ON_POSTGRESQL = {3: {7, 8}, 1: {7, 8}}
# With several judges it is read once more how a pair stands, after its lock.
PER_VOTE_OF_TWO_JUDGES = {"sqlite": {10, 11}, "postgresql": {8, 9}}


# One vote of N = 3 is chosen so that it settles nothing; N = 1 always does.
@pytest.mark.parametrize(("budget", "judges", "settles"), [(3, 1, False), (1, 1, True), (3, 2, False)])
def test_the_voters_messages(client, researcher, idle_tasks, budget, judges, settles):
    questions = [{"question": question, "votes": budget} for question in ("Which?", "And which?")]
    config = make_config(judges=questions[:judges], chains=8)
    campaign = start_campaign(researcher, config=config)
    client.post(invitation_path(campaign))
    page, costs = PageSocket(client, invitation_path(campaign)), []
    # The test's own: the coroutines below run in another thread, where the proxy would find another one.
    own = connections[DEFAULT_DB_ALIAS]

    async def shown(screen) -> str | None:
        """Return the lease of the pair that comes, and note what that costs."""
        with Statements(own) as statements:
            lease = lease_in(await screen)
        costs.append(len(statements))
        return lease

    async def vote() -> list[str]:
        keys = [await shown(page.open())]
        for _ in range(4):
            choice = await sync_to_async(_choice)(keys[-1])
            keys.append(await shown(page.send(lease=keys[-1], choice=choice, elapsed_ms="700")))
        await shown(page.send(lease=keys[-1], choice="skip"))
        await page.close()
        return keys[:-1]

    keys = async_to_sync(vote)()
    idle_tasks()
    assert {_settled(key) for key in keys} == {settles}
    opening, *votes, skipping = costs
    on_sqlite = connection.vendor == "sqlite"
    if judges == 2:
        assert (opening, skipping) == (11, 8)
        assert set(votes) <= PER_VOTE_OF_TWO_JUDGES[connection.vendor]
    else:
        assert (opening, skipping) == (10 if budget == 3 or not on_sqlite else 11, 9 if on_sqlite else 8)
        assert set(votes) <= (PER_VOTE if on_sqlite else ON_POSTGRESQL)[budget]


def _choice(key: str) -> str:
    """Return the side whose choice leaves a comparison of N = 3 open: for it settles U < r0 / 3, against it U >= r0."""
    lease = Lease.objects.select_related("comparison").get(key=key)
    side, comparison = Side(lease.proposal_side), lease.comparison
    is_for = comparison.uniform >= math.exp(comparison.log_r0) / 3
    return str((side if is_for else side.other).value)


def _settled(key: str) -> bool:
    vote = Vote.objects.get(key=key)
    return Comparison.objects.filter(pk=vote.comparison_id, verdict__isnull=False).exists()
