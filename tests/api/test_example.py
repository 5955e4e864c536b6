"""The program in docs/api.md judges a campaign, word for word as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prefmh_web.campaigns.lifecycle import programs
from prefmh_web.campaigns.models import Vote
from tests.support.stack import make_campaign, make_recipe

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
MOST_LINES = 20


def example() -> str:
    section = PAGE.read_text().partition("## A program that judges")[2]
    found = re.search(r"This is a whole program:\n\n```python\n(.*?)```", section, re.S)
    assert found
    return found[1]


def test_the_program_in_the_documentation_judges_a_campaign(live_site, researcher):
    judge = {"question": "Which is shorter?", "budget": 1, "source": {"kind": "program", "name": "by length"}}
    campaign = make_campaign(researcher, recipe=make_recipe(judges=[judge], chains=2, steps=4))
    assert len([line for line in example().splitlines() if line.strip()]) <= MOST_LINES
    told = os.environ | {"PREFMH_URL": live_site.url, "PREFMH_JUDGE_TOKEN": programs.make_token(campaign.judges.get())}
    ran = subprocess.run(
        [sys.executable, "-c", example()], env=told, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    campaign.refresh_from_db()
    assert campaign.status == "finished"
    assert Vote.objects.filter(judge__campaign=campaign, number__isnull=False).exists()
