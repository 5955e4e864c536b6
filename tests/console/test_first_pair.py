"""The first pair on a draft's page: it is the one that voters will see."""

from __future__ import annotations

import re

from django.urls import reverse

import sampler
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign
from tests.console.test_pages import OF_TEXTS, form


def texts_in(page: str) -> list[str]:
    found = re.findall(r'<span class="text">(.*?)</span>\n', page, flags=re.DOTALL)
    return [re.sub(r"<[^>]+>", "", each) for each in found]


def created(client, **fields) -> str:
    answer = client.post(reverse("console:create"), form(**{"space.catalog.file": ""} | fields), follow=True)
    assert answer.redirect_chain
    return answer.content.decode()


def test_the_reply_to_a_setup_shows_its_question_its_instructions_and_the_first_pair(signed_in, idle_tasks):
    fields = OF_TEXTS | {"seed": "77", "kernel.usual.distance": "fixed", "kernel.usual.length": "1"}
    page = created(signed_in, instructions="Choose by feeling.", **fields, **{"judges.0.question": "Which is darker?"})
    for words in ("Which is darker?", "Choose by feeling.", "Skip this pair"):
        assert words in page
    campaign = Campaign.objects.get()
    plan = plan_of(campaign)
    pair = sampler.ask(plan, sampler.begin(plan, 0))
    assert sorted(texts_in(page)) == sorted(plan.space.content(state) for state in (pair.current, pair.proposal))
    # The negative control: another seed begins with another pair.
    assert sorted(texts_in(created(signed_in, **fields | {"seed": "78"}))) != sorted(texts_in(page))
