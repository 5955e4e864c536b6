"""A finished campaign of a catalog with as many votes as asked for, written into the tables by a few statements.

The record looks like one that people made: chains in step with each other, moves that follow from the verdicts, votes
numbered and on changing sides. The database draws what was voted, and the verdicts take turns, so it does not replay.
"""

from datetime import UTC, datetime

from django.contrib.auth import get_user_model
from django.db import connection, transaction

import sampler
from prefmh_web import config as configs
from prefmh_web.campaigns.models import Campaign, Chain, Judge, State, Voter, columns_of

OBJECTS, CHAINS, PEOPLE = 1000, 10, 40
# Seconds between two votes.
_PACE = 0.731
_SALT = "0123456789abcdef" * 2
_FIELDS = {
    "postgresql": {
        "uniform": "random()",
        "side": "(ARRAY['first', 'second'])[1 + floor(2 * random())::int]",
        "key": "gen_random_uuid()",
        "moment": "timestamptz '2026-01-01 00:00:00.000417+00' + {} * interval '1 second'",
    },
    "sqlite": {
        "uniform": "(random() & 9007199254740991) / 9007199254740992.0",
        "side": "CASE WHEN random() & 1 THEN 'first' ELSE 'second' END",
        "key": "lower(hex(randomblob(16)))",
        "moment": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 1767225600 + {}, 'unixepoch') || '417'",
    },
}
# Every odd step is accepted: a chain stands where the step before proposed, or the one before that.
_STEPS = """
    INSERT INTO campaigns_comparison
        (chain_id, chain_campaign_id, chain_index, step, current_id, proposal_id, log_r0, uniform, opened_at, verdict,
        decided_at, is_askable)
    WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < %(steps)s),
    walk AS (SELECT i, i %% %(chains)s AS "index", 1 + i / %(chains)s AS step FROM numbers)
    SELECT h.id, h.campaign_id, h."index", w.step, c.id, p.id, {uniform}, {uniform}, {opened},
        CASE w.step %% 2 WHEN 1 THEN 'accept' ELSE 'reject' END, {decided}, {no}
    FROM walk w
    JOIN campaigns_chain h ON h.campaign_id = %(campaign)s AND h."index" = w."index"
    JOIN campaigns_state c ON c.campaign_id = %(campaign)s
        AND c."index" = (w."index" * 31 + (w.step - w.step %% 2) * 7) %% %(objects)s
    JOIN campaigns_state p ON p.campaign_id = %(campaign)s
        AND p."index" = (w."index" * 31 + (w.step + 1) * 7) %% %(objects)s
    ORDER BY i
"""
_VOTES = """
    INSERT INTO campaigns_vote
        (key, comparison_id, judge_id, voter_id, number, proposal_side, chosen_side, elapsed_ms, layout, reason,
            cast_at)
    WITH RECURSIVE numbers(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < %(votes)s)
    SELECT {key}, %(first)s + i / %(budget)s, %(judge)s, %(person)s + (i * 7) %% %(people)s, 1 + i %% %(budget)s,
        {side}, {side}, 400 + i %% 20011 * 7919 %% 20011, '', '', {cast}
    FROM numbers ORDER BY i
"""


def make_record(votes: int, budget: int) -> Campaign:
    """Return a new finished campaign of one question with `votes` votes, `budget` of them to a step."""
    campaign = _make_campaign(-(-votes // budget), budget)
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # A million foreign keys are right as they are made; to check them takes most of the time.
            cursor.execute("SET LOCAL session_replication_role = replica")
        _fill(cursor, campaign, votes, budget)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # As autovacuum does after a while.
            cursor.execute("ANALYZE")
    return campaign


def _make_campaign(steps: int, budget: int) -> Campaign:
    length = -(-steps // CHAINS)
    config = {
        "name": "Large",
        "space": {"kind": "catalog", "objects": "texts", "neighbours": 3},
        "kernel": {"kind": "neighbours"},
        "judges": [{"question": "Which is darker?", "votes": budget}],
        "rule": {"kind": "n-vote"},
        "chains": CHAINS,
        "steps": length,
        "seed": 20261121,
    }
    now = datetime.now(UTC)
    columns = columns_of(configs.CampaignConfig.model_validate(config))
    owner = get_user_model().objects.create_user(f"ada-{Campaign.objects.count()}")
    campaign = Campaign.objects.create(
        **columns,
        owner=owner,
        status="finished",
        started_at=now,
        finished_at=now,
        seed_hash=sampler.hash_of_seed(columns["seed"], _SALT),
        seed_salt=_SALT,
    )
    Judge.objects.create(campaign=campaign, index=0, question="Which is darker?", max_votes=budget)
    states = State.objects.bulk_create(_state(campaign, index) for index in range(OBJECTS))
    Chain.objects.bulk_create(_chain(campaign, states, index, steps, length) for index in range(CHAINS))
    Voter.objects.bulk_create(Voter(campaign=campaign) for _ in range(PEOPLE))
    return campaign


def _state(campaign: Campaign, index: int) -> State:
    # Lengths differ, so that there is something to follow along the chains.
    text = (
        f"The house number {index}, which stood beside the {'very ' * (index % 5)}old road, was dark; "
        "nobody had lit a lamp."
    )
    neighbours = [(index + step) % OBJECTS for step in (1, OBJECTS // 2, OBJECTS - 1)]
    return State(campaign=campaign, index=index, content=text, weight=1.0, neighbours=neighbours)


def _chain(campaign: Campaign, states: list[State], index: int, steps: int, length: int) -> Chain:
    """Return a chain that has decided its share of all steps, as `_STEPS` writes them."""
    step = (steps - index + CHAINS - 1) // CHAINS
    start, head = (states[(index * 31 + moved * 7) % len(states)] for moved in (0, step + step % 2))
    return Chain(campaign=campaign, index=index, start=start, head=head, length=length, step=step)


def _fill(cursor, campaign: Campaign, votes: int, budget: int) -> None:
    fields = _FIELDS[connection.vendor]
    steps = -(-votes // budget)
    moment = fields["moment"].format
    # As many seconds as the votes before it took.
    opened, decided, cast = (
        moment(f"(i * {_PACE * budget})"),
        moment(f"((i + 9) * {_PACE * budget})"),
        moment(f"(i * {_PACE})"),
    )
    no = "false" if connection.vendor == "postgresql" else "0"
    cursor.execute(
        _STEPS.format(uniform=fields["uniform"], opened=opened, decided=decided, no=no),
        {"steps": steps, "chains": CHAINS, "objects": OBJECTS, "campaign": campaign.pk},
    )
    cursor.execute(
        "SELECT min(c.id) FROM campaigns_comparison c JOIN campaigns_chain h ON h.id = c.chain_id"
        " WHERE h.campaign_id = %s",
        [campaign.pk],
    )
    [first] = cursor.fetchone()
    values = {
        "votes": votes,
        "budget": budget,
        "first": first,
        "judge": campaign.judges.get().pk,
        "person": campaign.voters.earliest("pk").pk,
        "people": PEOPLE,
    }
    cursor.execute(_VOTES.format(key=fields["key"], side=fields["side"], cast=cast), values)
