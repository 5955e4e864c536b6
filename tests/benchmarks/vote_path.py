"""How much of the program one vote goes through: files of ours, functions and calls.

    python -m tests.benchmarks.vote_path [--list] [--json FILE]

A vote is sent as the page sends it, over a socket, and followed until the next screen has come and other pages are
told. It decides its step, and the chain's next pair is opened. The database is a new one of SQLite; what a process
remembers of a campaign, it remembers by then.

    plain    anybody with the link votes
    study    a platform sends people: limits of votes, time and waiting, attention checks and repeats, a budget
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync

if TYPE_CHECKING:
    from tests.support.people import PageSocket

ROOT = Path(__file__).parents[2]
OURS = tuple(str(ROOT / package) for package in ("prefmh_web", "sampler"))
# Of notifications: a moment later, no group waits for the rest of one that was sent before.
_QUIET_S = 1.5
_WARM_VOTES = 3
_COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
_SENT = {"choice": "first", "elapsed_ms": "1400", "hidden_ms": "0", "layout": "beside", "translated": "0"}
STUDIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "study": {
        "votes_per_person": 40,
        "quota": 30,
        "max_minutes": 60,
        "max_active_minutes": 50,
        "budget": 1000,
        "protocol": {"check_share": 0.02, "repeat_share": 0.02, "wait_minutes": 10},
    },
}


class Trace:
    """The calls of our own functions, on all threads that begin after this was made."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls: Counter[CodeType] = Counter()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        # Of a comprehension, the function around it is counted.
        is_function = event == "call" and frame.f_code.co_name not in _COMPREHENSIONS
        if self.is_on and is_function and frame.f_code.co_filename.startswith(OURS):
            self.calls[frame.f_code] += 1


async def follow(trace: Trace, page: PageSocket) -> None:
    """Vote on a page of its own, and trace the last vote."""
    from tests.voting.test_socket import lease_in

    screen = await page.open()
    for vote in range(_WARM_VOTES + 1):
        await asyncio.sleep(_QUIET_S)
        trace.is_on = vote == _WARM_VOTES
        screen = await page.send(**_SENT, lease=lease_in(screen))
        await asyncio.sleep(_QUIET_S / 10)
    trace.is_on = False
    await page.close()


def measured(study: dict[str, Any]) -> dict[str, Any]:
    """Return what a vote goes through in a campaign whose steps take one vote."""
    trace = Trace()
    from django.contrib.auth import get_user_model
    from django.test import Client

    from tests.support import campaigns, people

    owner = get_user_model().objects.get_or_create(username="owner")[0]
    config = campaigns.make_config(judges=[{"question": "Which?", "votes": 1}], chains=8, steps=100)
    browser = Client(SERVER_NAME="localhost")
    if study:
        campaign = people.recruited_campaign(owner, config=config, **study)
        people.arrive(campaign, people.prolific("somebody"), browser)
    else:
        campaign = campaigns.start_campaign(owner, config=config)
        browser.post(campaigns.invitation_path(campaign))
    async_to_sync(follow)(trace, people.PageSocket(browser, campaigns.invitation_path(campaign)))
    entered = sorted((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname) for code in trace.calls)
    files = sorted({file for file, _ in entered})
    return {"files": files, "functions": [":".join(each) for each in entered], "calls": trace.calls.total()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the functions, too")
    parser.add_argument("--json", type=Path, help="write what was found to this file as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="prefmh-vote-path-") as folder:
        for name in ("DATABASE_URL", "REDIS_URL"):
            os.environ.pop(name, None)
        os.environ |= {"PREFMH_DATA": folder, "SECRET_KEY": "x" * 60, "LOG_LEVEL": "ERROR", "DEBUG": "1"}
        os.environ |= {"DJANGO_SETTINGS_MODULE": "prefmh_web.settings", "DJANGO_ALLOW_ASYNC_UNSAFE": "1"}
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        found = {name: measured(study) for name, study in STUDIES.items()}
    for name, figures in found.items():
        files, functions = len(figures["files"]), len(figures["functions"])
        print(f"{name:>6}: {files} files, {functions} functions, {figures['calls']} calls")
        if options.list:
            print("\n".join(figures["functions"]))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
