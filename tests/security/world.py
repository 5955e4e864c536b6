"""A victim with everything that can be stolen, strangers who try, and a digest that tells whether they changed it.

Every address of the application, from its URL conf: a page added later is attacked by itself.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.auth.models import AbstractUser
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Model
from django.http import HttpResponseBase
from django.test import Client
from django.test.client import ClientHandler
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from prefmh_web.accounts.models import ApiToken, make_researcher
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.models import Campaign, JudgeTrial, Lease, Measured, Membership, Side, number_of
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.voting import admission
from tests.support.campaigns import make_campaign, make_config, make_draft
from tests.support.process import wait_until_idle

WORDS = "Velvet zebra"
SMILES = "smiles\nCCO\nCCN\nCCC\nCCCl\nCCBr\nCCF\n"


@dataclass(frozen=True)
class World:
    """Two campaigns and a draft of the victim's, and the people around them."""

    victim: AbstractUser
    colleague: AbstractUser
    """A researcher with a campaign of their own."""
    bystander: AbstractUser
    """An account without any role; a viewer in `watched`."""
    manager: AbstractUser
    """Of `campaign`."""
    campaign: Campaign
    draft: Campaign
    watched: Campaign
    voter: Client
    """The browser of somebody who votes in `campaign`."""
    pair: Lease
    """The pair the voter sees."""
    voted: UUID
    """The pair they answered before."""
    tried: JudgeTrial
    """With a sample pair that a model was asked about before the start of `campaign`."""

    @property
    def token(self) -> str:
        return self.campaign.invitations.get().token

    @property
    def vote_path(self) -> str:
        return f"/join/{self.token}/vote/"

    @property
    def names(self) -> dict[str, object]:
        """The victim's things by the names that addresses give them; a token stands for one that was guessed."""
        return {
            "campaign_id": self.campaign.pk,
            "state_id": self.campaign.states.first().pk,
            "member_id": self.campaign.memberships.get().pk,
            "invitation_id": self.campaign.invitations.get().pk,
            "voter_number": number_of(self.pair.voter),
            "endpoint_id": Endpoint.objects.get(owner=self.victim).pk,
            "filename": "export.zip",
            "name": "using",
            "token": "A" * 22,
            "signed": "A" * 22,
            "lease": self.pair.key,
            "comparison_id": self.pair.comparison_id,
            "trial_id": self.tried.pk,
            "index": 0,
            "pair": 0,
            "which": 0,
            "side": "first",
            "chain": self.pair.comparison.chain.index,
            "step": self.pair.comparison.step,
            "shown": "proposal",
            "number": "0",
            "table": "votes",
            "token_id": self.victim.api_tokens.get().pk,
        }

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody but the victim and their people may ever read."""
        return (WORDS, "victim", self.token, str(self.pair.key), "secret-endpoint")


def build() -> World:
    """Make the world anew, through the application's own doors."""
    users = get_user_model().objects
    victim, colleague, bystander = (users.create_user(name) for name in ("victim", "colleague", "bystander"))
    for researcher in (victim, colleague):
        make_researcher(researcher)
    molecules = make_config(space={"kind": "catalog", "objects": "molecules", "neighbours": 2}, chains=6)
    campaign = make_campaign(
        victim, file=SMILES, filename="m.csv", config=molecules, name=f"{WORDS} molecules", lease_seconds=3600
    )
    watched = make_campaign(victim, name=f"{WORDS} texts")
    draft = make_draft(victim, name=f"{WORDS} draft")
    make_campaign(colleague, name="The colleague's")
    manager = users.create_user("victim-friend")
    access.add_member(campaign, manager.username, Membership.Role.MANAGER)
    access.add_member(watched, "bystander", Membership.Role.VIEWER)
    Endpoint.objects.create(owner=victim, name="secret-endpoint", base_url="http://127.0.0.1:9/v1", model="m")
    ApiToken.make(victim, "secret-endpoint's program", ApiToken.Scope.RUN)
    sample = {"content": "CCO", "code": "", "media_type": "", "columns": {}, "index": 0, "picture": ""}
    tried = JudgeTrial.objects.create(
        campaign=campaign,
        judge_index=0,
        judge={},
        prompt_version="0" * 8,
        wanted=1,
        replies=1,
        pairs=[{"objects_shown": [sample, sample], "replies": {}, "preferred": None}],
        status=JudgeTrial.Status.DONE,
    )
    voter = Client()
    voter.post(campaign.invitations.get().get_absolute_url())
    person = admission.voter_in(voter.session, campaign.pk)
    answered = leases.take(person)
    leases.answer(answered.key, person, Side.FIRST, 700)
    wait_until_idle()
    pair = leases.take(person)
    return World(victim, colleague, bystander, manager, campaign, draft, watched, voter, pair, answered.key, tried)


@cache
def _handler(enforce_csrf_checks: bool) -> ClientHandler:
    # Each would look through all static files anew.
    return ClientHandler(enforce_csrf_checks)


def browser_of(user: AbstractUser | None, enforce_csrf_checks: bool = False) -> Client:
    """Return a browser in which this user is signed in, or nobody."""
    client = Client(enforce_csrf_checks=enforce_csrf_checks)
    client.handler = _handler(enforce_csrf_checks)
    if user:
        # Not force_login: it notes the time in the user's row.
        session = client.session
        session[SESSION_KEY], session[HASH_SESSION_KEY] = str(user.pk), user.get_session_auth_hash()
        session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
        session.save()
    return client


def digest(without: tuple[type[Model], ...] = ()) -> dict[str, str]:
    """Return a hash of every row of every table but sessions and `without`, by the table's model.

    What is measured of objects is left out: it follows from them, and looking at a page has it filled in.
    """
    left_out = (Session, Measured, *without)
    models = [model for model in apps.get_models(include_auto_created=True) if model not in left_out]
    return {model._meta.label: hashlib.sha256(repr(_rows(model)).encode()).hexdigest() for model in models}


def _rows(model: type[Model]) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT * FROM "{model._meta.db_table}" ORDER BY "{model._meta.pk.column}"')
        return cursor.fetchall()


def assert_leaks_nothing(answer: HttpResponseBase, world: World) -> None:
    """Fail if the answer's body or headers hold any of the victim's secrets."""
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    told = body.decode("utf-8", "replace") + repr(list(answer.items()))
    # An address that was asked for may stand in an answer: as the page to come back to after signing in.
    for address in (answer.request["PATH_INFO"], *answer.request["QUERY_STRING"].split("&")):
        told = told.replace(address, "")
    assert [secret for secret in world.secrets if secret in told] == []


METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")


@dataclass(frozen=True)
class Address:
    """One named URL pattern and the names of what stands in it."""

    name: str
    parts: tuple[str, ...]

    def path(self, values: dict[str, object]) -> str:
        """Return the path of somebody's things.

        Raises:
            KeyError: a new kind of thing; say in `world.py` which of the victim's is meant.
        """
        return reverse(self.name, kwargs={part: values[part] for part in self.parts})


@cache
def all_addresses() -> tuple[Address, ...]:
    """Return every named pattern, in the URL conf's order."""
    return tuple(_walk(get_resolver(), "", ()))


def _walk(resolver: URLResolver, namespace: str, above: tuple[str, ...]):
    for entry in resolver.url_patterns:
        parts = (*above, *entry.pattern.regex.groupindex)
        if isinstance(entry, URLResolver):
            inner = f"{namespace}{entry.namespace}:" if entry.namespace else namespace
            yield from _walk(entry, inner, parts)
        elif isinstance(entry, URLPattern):
            yield Address(f"{namespace}{entry.name}", parts)
