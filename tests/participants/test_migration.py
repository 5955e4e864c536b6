"""People who took part before there were stages go on where they are."""

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from prefmh_web.campaigns.models import Vote
from prefmh_web.participants.models import Participation
from tests.support.recruited import arrive, pair_of, prolific, recruited_campaign
from tests.support.stack import invitation_path

BEFORE = ("participants", "0001_initial")


@pytest.mark.django_db(transaction=True)
def test_a_vote_from_a_page_that_was_open_over_the_upgrade_counts(researcher):
    study = recruited_campaign(researcher, votes_each=3)
    browser = arrive(study, prolific("anna"))
    key = pair_of(browser, study)
    try:
        MigrationExecutor(connection).migrate([BEFORE])
    finally:
        now = MigrationExecutor(connection)
        now.migrate(now.loader.graph.leaf_nodes("participants"))
    assert Participation.objects.get().stage == "votes"
    browser.post(f"{invitation_path(study)}vote/", {"choice": "left", "lease": str(key)})
    assert str(Vote.objects.get().key) == str(key)
