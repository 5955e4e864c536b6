"""What platforms' links say, over the registry of recruiters."""

from urllib.parse import parse_qs, quote, urlsplit

import numpy as np
import pytest

from prefmh_web.participants import completion, joining
from prefmh_web.participants.joining import Arrival, NotFromThere
from prefmh_web.participants.models import LONGEST_ID, Participant, Participation
from prefmh_web.recruiters import PROLIFIC, RECRUITERS, SONA, recruiter_by

PLATFORMS = [recruiter_by(each.name, "person") for each in RECRUITERS.values() if each.person]
each_platform = pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)


IDS = {"prolific": "5f8c2a1b3d4e5f8c2a1b3d4e", "sona": "70012", "mturk-toolkit": "A20KZBL2PA6ZW", "link": "Ada 17"}


def query_of(platform) -> dict[str, str]:
    """Return what the platform's own link has once its placeholders are filled in."""
    values = {name: f"value-of-{name}" for name in (*platform.parameters, *platform.appends)}
    return values | {platform.person: IDS.get(platform.name, f"value-of-{platform.person}")}


@each_platform
def test_a_filled_in_link_names_the_person(platform):
    arrival = joining.read(platform, query_of(platform))
    assert arrival.external_id == query_of(platform)[platform.person]
    assert arrival.session_id == query_of(platform).get(platform.session, "")
    others = query_of(platform).keys() - {platform.person, platform.session}
    assert arrival.parameters == {name: f"value-of-{name}" for name in others}


@each_platform
def test_the_link_to_paste_has_a_placeholder_for_each_parameter(platform):
    link = platform.link("https://study.example/join/abc/")
    assert link.startswith("https://study.example/join/abc/")
    assert parse_qs(urlsplit(link).query) == {name: [value] for name, value in platform.parameters.items()}


@pytest.mark.parametrize("platform", [each for each in PLATFORMS if each.parameters], ids=lambda each: each.name)
def test_a_link_that_the_platform_has_not_filled_in_is_refused(platform):
    for value in (platform.parameters[platform.person], f"[{platform.person}]", f"<{platform.person}>"):
        with pytest.raises(NotFromThere, match="in place of your"):
            joining.read(platform, query_of(platform) | {platform.person: value})


@pytest.mark.parametrize(
    ("platform", "value"),
    [("prolific", "anna"), ("prolific", f"{IDS['prolific']}0"), ("sona", "7a"), ("mturk-toolkit", "worker 17")],
)
def test_an_id_that_the_platform_never_gives_is_refused_unless_that_is_switched_off(platform, value):
    recruiter = recruiter_by(platform)
    query = query_of(recruiter) | {recruiter.person: value}
    with pytest.raises(NotFromThere, match=f"{value} in the link is no {recruiter.person}"):
        joining.read(recruiter, query)
    assert joining.read(recruiter, query, checks_ids=False).external_id == recruiter.folded(value)


def test_the_case_of_a_letter_makes_nobody_else_of_somebody_where_the_platform_has_one_case():
    upper = query_of(PROLIFIC) | {"PROLIFIC_PID": IDS["prolific"].upper()}
    assert joining.read(PROLIFIC, upper).external_id == IDS["prolific"]
    own = recruiter_by("link", "person")
    assert joining.read(own, {"person": "Ada"}) != joining.read(own, {"person": "ada"})


@each_platform
@pytest.mark.parametrize("value", [None, "", " ", "x" * (LONGEST_ID + 1), "a\nb", "\x00"])
def test_without_a_usable_id_the_page_names_what_is_missing(platform, value):
    query = query_of(platform) | {platform.person: value}
    query = {name: text for name, text in query.items() if text is not None}
    with pytest.raises(NotFromThere, match=platform.person):
        joining.read(platform, query)


def test_sona_has_one_code_for_the_person_and_the_visit():
    assert joining.read(SONA, {"survey_code": "77"}) == Arrival("77", "77")


def test_other_parameters_are_kept_up_to_a_stated_size():
    query = {"person": "p", "first": "x" * 400, "second": "y" * 400, "third": "z" * 400}
    assert joining.read(recruiter_by("link", "person"), query).parameters.keys() == {"first", "second"}


def test_an_arrival_is_believed_only_as_signed_for_its_link():
    arrival = Arrival("p", "s", {"STUDY_ID": "x"})
    text = joining.sign(arrival, "token")
    assert joining.signed(text, "token") == arrival
    for forged in (text[:-1], "", "nonsense", f"x{text}"):
        assert joining.signed(forged, "token") is None
    assert joining.signed(text, "another") is None


def test_a_signed_arrival_fits_into_a_cookie():
    """Of letters that cannot be compressed, as many as there may be."""
    letters = np.random.default_rng(1).integers(0x4E00, 0x9FFF, size=2000)
    text = "".join(map(chr, letters))
    query = {"PROLIFIC_PID": text[:LONGEST_ID], "SESSION_ID": text[-LONGEST_ID:]}
    query |= {f"other{place}": text[10 * place : 10 * place + 10] for place in range(40)}
    arrival = joining.read(PROLIFIC, query, checks_ids=False)
    assert len(arrival.parameters) > 5
    assert len(joining.sign(arrival, "token")) < 4000


@each_platform
def test_each_name_that_a_way_back_may_have_is_filled_in(platform):
    arrival = joining.read(platform, query_of(platform))
    participant = Participant(external_id=arrival.external_id)
    visit = {"session_id": arrival.session_id, "parameters": arrival.parameters}
    known = completion.fields_of(Participation(participant=participant, visits=[visit]), platform)
    for name in (*platform.parameters, *platform.appends):
        found = completion.way_back(f"https://x.example/{{{name}}}", known)
        assert found == f"https://x.example/{quote(query_of(platform)[name])}"


@pytest.mark.parametrize("pair", [("x", "\x00"), ("\x00", "x"), ("x", "a\nb")])
def test_what_no_database_stores_is_left_out(pair):
    arrival = joining.read(recruiter_by("link", "person"), {"person": "p", "kept": "1"} | dict([pair]))
    assert arrival.parameters == {"kept": "1"}
