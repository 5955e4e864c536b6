"""The form is another writer of the same setup: opened and sent back as it is, it changes nothing that a file says."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms import SetupForms
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.participants.recruiting import recruitment_of
from tests.console.test_pages import signed_in  # noqa: F401 - a fixture
from tests.support.posted import sent_back
from tests.support.setups import SETUPS, imported, written_file
from tests.support.stack import wait_until_idle


@pytest.fixture
def endpoints(researcher):
    for name in ("A judge", "Another", "A writer"):
        Endpoint.objects.create(
            owner=researcher, name=name, base_url="http://127.0.0.1:9/v1", model="m", dialect="vllm"
        )


def setup_as_shown(client, campaign: Campaign) -> dict:
    forms: SetupForms = client.get(reverse("console:edit", args=[campaign.pk])).context["forms"]
    return sent_back(forms.campaign, *forms.spaces, forms.rule, forms.panel, forms.questions)


def save_setup(client, campaign: Campaign, **changes) -> Campaign:
    fields = setup_as_shown(client, campaign) | changes
    answer = client.post(reverse("console:edit", args=[campaign.pk]), fields)
    assert answer.status_code == 302, problems_on(answer)
    wait_until_idle()
    return Campaign.objects.get(pk=campaign.pk)


def problems_on(answer) -> list:
    forms = answer.context["forms"]
    found = [forms.campaign.errors, *(each.errors for each in forms.spaces), forms.rule.errors, forms.panel.errors]
    return [*found, *(form.errors for form in forms.questions.forms)]


@pytest.mark.parametrize("name", SETUPS)
def test_the_setup_opened_and_sent_back_is_the_same_file(name, signed_in, researcher, endpoints):  # noqa: F811
    file = written_file(SETUPS[name](researcher))
    draft = imported(file, researcher)
    assert written_file(draft) == file
    assert written_file(save_setup(signed_in, draft)) == file


@pytest.mark.parametrize("name", SETUPS)
def test_the_pages_about_people_opened_and_sent_back_are_the_same_file(name, signed_in, researcher):  # noqa: F811
    file = written_file(SETUPS[name](researcher))
    draft = imported(file, researcher)
    for page in ("participants", "protocol", "languages"):
        address = reverse(f"console:{page}", args=[draft.pk])
        context = signed_in.get(address).context
        parts = [context["form"]] if page != "protocol" else _parts_of(context["forms"])
        if page == "protocol" and not recruitment_of(draft).platform.knows_people:
            # Nobody has a part of their own, so there is nothing to ask, and the page says so.
            continue
        answer = signed_in.post(address, sent_back(*parts))
        assert answer.status_code == 302, page
    assert written_file(Campaign.objects.get(pk=draft.pk)) == file


def _parts_of(forms) -> list:
    return [forms.texts, forms.questions, forms.practice, forms.checks, forms.gold]


def test_what_is_changed_in_the_form_is_changed_in_the_file(signed_in, researcher, endpoints):  # noqa: F811
    """The control."""
    draft = imported(written_file(SETUPS["written"](researcher)), researcher)
    before = written_file(draft).decode()
    after = written_file(save_setup(signed_in, draft, **{"model-texts-limit": "9"})).decode()
    assert before.replace("limit: 8", "limit: 9") == after
    assert before != after
