"""Driving the whole application: campaigns through the real doors, the real server, people who vote."""

import threading
import time
from collections.abc import Callable

import numpy as np
from django.conf import settings
from django.core.files.base import ContentFile

import sampler
from prefmh_web.annotate.tasks import settle_parts, sweep_leases
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Annotator, Campaign, Side
from prefmh_web.campaigns.tasks import sweep
from prefmh_web.embedded import tasks, working
from prefmh_web.embedded.server import Clock, server
from tests.support import copies, worker
from tests.support.ports import port_from

MIXTURE = {
    "kind": "mixture",
    "parts": [
        {"weight": 0.5, "kernel": {"kind": "independent"}},
        {"weight": 0.5, "kernel": {"kind": "neighbours"}},
    ],
}
TEXTS = "text,weight\n" + "".join(
    f"The {colour} {thing} stood there.,{1 + place % 3}\n"
    for place, (colour, thing) in enumerate(
        (c, t) for c in ("red", "blue", "grey") for t in ("house", "tree", "dog", "sea")
    )
)


def wait_until_idle(timeout: float = 30) -> None:
    """Return once no task is queued or running, those that tasks queue included.

    Raises:
        TimeoutError: there was still one after `timeout` seconds.
    """
    if settings.EMBEDDED:
        tasks.wait_until_idle(timeout)
    else:
        worker.wait_until_idle(timeout)


def sweep_everything() -> None:
    """Sweep once, as the embedded clock does or as beat does."""
    if settings.EMBEDDED:
        working.sweep_everything()
    else:
        sweep.delay()
        sweep_leases.delay()
        settle_parts.delay()


def make_recipe(**changes) -> dict:
    """Return a recipe for twelve texts, with changes."""
    return {
        "space": {"kind": "catalog", "objects": "texts", "neighbours": 3},
        "kernel": MIXTURE,
        "judges": [{"question": "Which is darker?", "budget": 2}, {"question": "Which is better?", "budget": 1}],
        "chains": 3,
        "steps": 50,
        "seed": 20261121,
    } | changes


def make_draft(owner, *, file: bytes | str = TEXTS, filename: str = "texts.csv", recipe=None, **fields) -> Campaign:
    """Return a draft whose file has been read; it starts under the seed of its recipe."""
    content = file.encode() if isinstance(file, str) else file
    fields = {"name": "Twelve texts", "instructions": "", "lease_seconds": 120, "is_seed_typed": True} | fields
    campaign = drafts.create(
        owner=owner, file=ContentFile(content, filename), filename=filename, recipe=recipe or make_recipe(), **fields
    )
    wait_until_idle()
    campaign.catalog.refresh_from_db()
    return campaign


def make_campaign(owner, **options) -> Campaign:
    """Return a started campaign whose first comparisons are open."""
    return copies.copied(owner, options, lambda: start_campaign(owner, **options))


def start_campaign(owner, **options) -> Campaign:
    """Return the same, made and started now, so that this process remembers all that a start leaves in memory."""
    campaign = make_draft(owner, **options)
    lifecycle.start(campaign)
    wait_until_idle()
    return campaign


def invitation_path(campaign: Campaign) -> str:
    return campaign.invitations.get().get_absolute_url()


class LiveServer:
    """The server of `manage.py serve` on a thread of this process: database, layer and tasks are shared."""

    def __init__(self) -> None:
        self.port = port_from(18_000)
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = server("127.0.0.1", self.port)
        self._thread = threading.Thread(target=self._server.run, name="server")
        self._clock = Clock(sweep_everything, every_s=1)

    def start(self) -> None:
        self._thread.start()
        self._clock.start()
        while not self._server.started:
            assert self._thread.is_alive(), f"the server on port {self.port} could not start"
            time.sleep(0.01)

    def drop_connections(self) -> None:
        """Cut every open connection, sockets included, as a bad network does."""
        for each in list(self._server.server_state.connections):
            each.loop.call_soon_threadsafe(each.transport.abort)

    def unsent(self) -> list[int]:
        """Return how many bytes wait in this process for each open connection to take them in."""
        connections = list(self._server.server_state.connections)
        return [connection.transport.get_write_buffer_size() for connection in connections]

    def stop(self) -> None:
        self._clock.stop()
        self._server.should_exit = True
        self._thread.join()
        wait_until_idle()


def vote_until_finished(
    campaign: Campaign, annotators: list[Annotator], scores: dict[int, Callable[[int], float]], rng: np.random.Generator
) -> int:
    """Let people with hidden scores vote through their leases, in random order, until the campaign is finished.

    Between two votes all tasks come to rest, so the same generator always gives the same campaign.

    Args:
        scores: for each judge's place, the hidden score of each state's place.

    Returns:
        The number of votes cast.
    """
    judges = {place: sampler.BradleyTerry(score) for place, score in scores.items()}
    votes = 0
    while True:
        wait_until_idle()
        annotator = annotators[int(rng.integers(len(annotators)))]
        lease = leases.take(annotator)
        if lease is None:
            campaign.refresh_from_db()
            if campaign.status == Campaign.Status.FINISHED:
                return votes
            continue
        prefers_right = judges[lease.judge.place].vote(rng, lease.left.place, lease.right.place)
        leases.answer(lease.key, annotator, Side.RIGHT if prefers_right else Side.LEFT, 0)
        votes += 1
