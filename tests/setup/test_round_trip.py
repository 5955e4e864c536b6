"""A setup that is exported, imported and exported again is the same bytes, whatever kind it is of."""

import pytest

from prefmh_web.campaigns.models import Campaign
from prefmh_web.setup.export import file_of, setup_of, text_of
from prefmh_web.setup.files import NAME
from prefmh_web.setup.record import texts
from tests.support.campaigns import SETUPS, imported, written_file

_STORED = ("name", "language", "lease_seconds", "suspend_after_skips", "suspend_after_reports")
_STORED += ("cost_cap", "request_cap", "is_seed_typed")
_OF_PEOPLE = ("recruiter", "parameter", "votes_each", "places", "budget", "place_pay", "currency", "most_minutes")
_OF_PEOPLE += ("most_active_minutes", "absent_minutes", "most_a_minute", "consent", "way_back")


@pytest.mark.parametrize("name", SETUPS)
def test_a_setup_comes_back_as_the_same_bytes(name, researcher):
    before = SETUPS[name](researcher)
    file = written_file(before)
    after = imported(file, researcher)
    assert written_file(after) == file
    assert after.is_draft
    assert_same(before, after)


def assert_same(before: Campaign, after: Campaign) -> None:
    """Demand that a draft is set up as another campaign is, as its rows say it."""
    same = {name: getattr(before, name) for name in _STORED}
    assert same == {name: getattr(after, name) for name in _STORED}
    assert after.instructions == before.instructions.replace("\r\n", "\n")
    own = {"target"} | (set() if before.is_seed_typed else {"seed"})
    assert without(after.config, own) == without(before.config, own)
    assert before.is_seed_typed == (after.seed == before.seed)
    one, other = before.config.study, after.config.study
    assert [getattr(one, name) for name in _OF_PEOPLE] == [getattr(other, name) for name in _OF_PEOPLE]
    assert one.protocol == other.protocol
    for outcome in ("completed", "withdrawn", "ended", "not-eligible"):
        assert one.codes.get(outcome, "") == other.codes.get(outcome, "")
        assert one.pay_for(outcome) == other.pay_for(outcome)
    assert excluded(one) == excluded(other)
    if not before.config.generates:
        assert after.catalog.status == "ready"
        assert after.catalog.filename == before.catalog.filename
        assert b"".join(file_of(after.catalog)) == b"".join(file_of(before.catalog))
        assert list(after.states.values_list("content", "weight", "columns")) == list(
            before.states.values_list("content", "weight", "columns")
        )


def without(config: dict, names: set[str]) -> dict:
    return {name: value for name, value in config.items() if name not in names}


def excluded(recruitment: Recruitment) -> list[int]:
    return list(recruitment.excluded.values_list("pk", flat=True)) if recruitment.pk else []


def test_what_differs_is_seen(researcher):
    """The control: a setup that another one resembles is not the same bytes."""
    before = SETUPS["texts"](researcher)
    file = written_file(before)
    Campaign.objects.filter(pk=before.pk).update(lease_seconds=91)
    before.refresh_from_db()
    assert written_file(before) != file


def test_the_owners_file_names_a_panel_and_no_file_a_seed_that_was_drawn(researcher):
    panel = SETUPS["panel"](researcher)
    assert "name: Ada Lovelace" in text_of(setup_of(panel))
    assert "Lovelace" not in dict(texts(panel))[NAME]
    assert str(panel.seed).encode() not in written_file(panel)
    typed = SETUPS["texts"](researcher)
    assert f"seed: {typed.config_data['seed']}".encode() in written_file(typed)


def test_two_campaigns_of_one_file_draw_their_own_seeds(researcher):
    file = written_file(SETUPS["base"](researcher))
    assert imported(file, researcher).seed != imported(file, researcher).seed
