"""The pages that wait for a pair, and what becomes of the others when one of them dies."""

import asyncio

from asgiref.sync import async_to_sync, sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.test import Client

from prefmh_web.asgi import application
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign
from tests.annotate.test_socket import lease_in
from tests.support.stack import invitation_path, make_campaign, make_recipe

# Sooner than a waiting page looks by itself.
SOON_S = 5


async def opened(campaign: Campaign, client: Client) -> ApplicationCommunicator:
    """Open a page's socket; return it when its first screen, without a pair, has come."""
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"cookie", cookies.encode())]
    path = f"/ws{await sync_to_async(invitation_path)(campaign)}"
    scope = {"type": "websocket", "path": path, "headers": headers, "query_string": b"", "subprotocols": []}
    page = ApplicationCommunicator(application, scope)
    await page.send_input({"type": "websocket.connect"})
    assert (await page.receive_output(10))["type"] == "websocket.accept"
    assert lease_in((await page.receive_output(10))["text"]) is None
    return page


def test_a_page_that_dies_keeps_no_other_from_its_pair(researcher, idle_tasks):
    judges = [{"question": "Which?", "budget": 1}]
    campaign = make_campaign(researcher, recipe=make_recipe(chains=1, judges=judges))
    holder = Annotator.objects.create(campaign=campaign)
    lease = leases.take(holder)
    people = [Client(), Client()]
    for person in people:
        person.post(invitation_path(campaign))

    async def second_gets_it() -> str | None:
        first, second = [await opened(campaign, person) for person in people]
        # As a server does with a handler that has raised: nobody says goodbye. What its end sets going comes to rest.
        first.stop(exceptions=False)
        await asyncio.sleep(0.3)
        await sync_to_async(leases.skip)(lease.key, holder)
        shown = None
        while shown is None:
            shown = lease_in((await second.receive_output(SOON_S))["text"])
        await second.send_input({"type": "websocket.disconnect", "code": 1000})
        await second.wait(10)
        return shown

    assert async_to_sync(second_gets_it)()
