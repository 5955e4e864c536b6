"""The form is another writer of the same setup: opened and sent back as it is, it changes nothing that a file says."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms import SetupForms
from prefmh_web.endpoints.models import Endpoint
from tests.support.campaigns import SETUPS, imported, sent_back, wait_until_idle, written_file


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


WRITTEN = """version: 1
name: Hidden
space:
  kind: model-texts
  model: A writer
  prompts: [Translate., Translate it well.]
  sources: [Das Meer., Der Wald.]
  estimate: words
kernel: {kind: suffix}
judges: [{question: Which?, votes: 1, source: {kind: model, endpoint: A judge}}]
chains: 2
steps: 10
"""
LAWS = """version: 1
name: Laws
instructions: |
  Read both.

  Then choose.
language: ar
space: {kind: texts, scenarios: [7, 0], temperature: 0.9}
kernel:
  kind: walk
  kernel:
    kind: mixture
    parts:
      - {weight: 0.7, kernel: {kind: suffix, cut: limit}}
      - {weight: 0.2, kernel: {kind: independent}}
      - {weight: 0.1, kernel: {kind: suffix, cut: limit}}
  length: [{weight: 0.25, length: 2}, {weight: 0.75, length: 5}]
judges:
  - {question: Which?, votes: 1, order: proposal-first}
  - {question: And which?, votes: 3}
  - {question: Which?, votes: 1, order: proposal-second}
chains: 2
steps: 10
scorers: [words, length_of_my_own]
people:
  recruiter: open
  consent: "نعم\\n\\nYes."
  protocol:
    instructions: |
      Read this.

      - Twice.
    check_share: 0.125
    repeat_share: 0.075
    practice:
      - {first: "A\\nB", second: C, answer: first, if_wrong: No.}
"""
IMAGES = """version: 1
name: Steps of three sizes
space: {kind: images}
kernel:
  kind: mixture
  parts:
    - {weight: 0.5, kernel: {kind: crank-nicolson, beta: 0.1}}
    - {weight: 0.25, kernel: {kind: crank-nicolson, beta: 0.2}}
    - {weight: 0.15, kernel: {kind: crank-nicolson, beta: 0.3}}
    - {weight: 0.1, kernel: {kind: independent}}
judges: [{question: Which?, votes: 2}]
chains: 2
steps: 10
"""


@pytest.mark.parametrize("name", [*SETUPS, "written with sources", "laws", "steps of three sizes"])
def test_every_form_opened_and_sent_back_is_the_same_file(name, signed_in, researcher, endpoints):
    """Also where the forms do not show all that the file says."""
    texts = {"written with sources": WRITTEN, "laws": LAWS, "steps of three sizes": IMAGES}
    file = texts[name].encode() if name in texts else written_file(SETUPS[name](researcher))
    draft = imported(file, researcher)
    file = written_file(draft)
    assert written_file(save_setup(signed_in, draft)) == file
    # Where nobody has a part of their own there is nothing to ask, and the page of the protocol says so.
    for page in ("participants", "protocol")[: 1 + draft.config.study.platform.knows_people]:
        context = signed_in.get(address := reverse(f"console:{page}", args=[draft.pk])).context
        forms = context.get("forms")
        parts = [forms.texts, forms.questions, forms.practice, forms.checks, forms.gold] if forms else [context["form"]]
        assert signed_in.post(address, sent_back(*parts)).status_code == 302, page
    assert written_file(Campaign.objects.get(pk=draft.pk)) == file


def test_what_is_changed_in_the_form_is_changed_in_the_file(signed_in, researcher, endpoints):
    """The control."""
    draft = imported(written_file(SETUPS["written"](researcher)), researcher)
    before = written_file(draft).decode()
    after = written_file(save_setup(signed_in, draft, **{"model-texts-limit": "9"})).decode()
    assert before.replace("limit: 8", "limit: 9") == after
    assert before != after


def test_beside_a_changed_field_what_the_form_does_not_show_stays(signed_in, researcher, endpoints):
    draft = imported(WRITTEN.encode(), researcher)
    after = save_setup(signed_in, draft, **{"model-texts-limit": "9", "model-texts-fresh_share": "0.5"})
    assert after.config_data["space"]["sources"] == ["Das Meer.", "Der Wald."]
    assert after.config_data["space"]["estimate"] == "words"
    assert (after.config_data["space"]["limit"], after.config_data["kernel"]["parts"][0]["weight"]) == (9, 0.5)
    images = imported(IMAGES.encode(), researcher)
    after = save_setup(signed_in, images, chains="5")
    assert (after.config_data["chains"], after.config_data["kernel"]) == (5, images.config_data["kernel"])


def test_prompts_that_leave_their_sources_alone_are_refused(signed_in, researcher, endpoints):
    draft = imported(WRITTEN.encode(), researcher)
    fields = setup_as_shown(signed_in, draft) | {"model-texts-prompts": "Only one."}
    page = signed_in.post(reverse("console:edit", args=[draft.pk]), fields).content.decode()
    assert "sources must be 1, one for each prompt, not 2" in page
    assert len(Campaign.objects.get(pk=draft.pk).config_data["space"]["prompts"]) == 2
