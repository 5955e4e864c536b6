"""The receiver in docs/webhooks.md checks what it is sent, word for word as it stands there."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from prefmh_web.campaigns.lifecycle import webhooks
from prefmh_web.campaigns.models import Delivery
from tests.support.ports import port_from
from tests.support.stack import wait_until_idle

PAGE = Path(__file__).resolve().parents[2] / "docs" / "webhooks.md"
_PATIENCE_S = 30


@pytest.fixture
def port() -> int:
    return port_from(25_000)


@pytest.fixture
def hook(campaign, settings, port):
    settings.WEBHOOK_ALLOWED_HOSTS = (f"127.0.0.1:{port}",)
    settings.WEBHOOK_ALLOW_PRIVATE = ("127.0.0.1/32",)
    return webhooks.make(campaign, f"http://127.0.0.1:{port}/", ["campaign.finished"])


@pytest.fixture
def receiver(hook, port):
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    told = os.environ | {"WEBHOOK_SECRET": hook[1], "PORT": str(port)}
    with subprocess.Popen([sys.executable, "-c", example], env=told, stdout=subprocess.PIPE, text=True) as running:
        wait_for_answer(f"http://127.0.0.1:{port}/")
        yield running
        running.kill()


def wait_for_answer(url: str) -> None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            httpx.get(url)
            return
        except httpx.TransportError:
            assert time.monotonic() < until, "the receiver never answers"
            time.sleep(0.05)


def test_the_receiver_in_the_documentation_takes_what_is_signed_and_nothing_else(hook, receiver, port):
    webhooks.test(hook[0])
    wait_until_idle()
    delivery = Delivery.objects.get()
    assert receiver.stdout.readline() == f"webhook.test {delivery.event_id}\n"
    assert delivery.status == Delivery.Status.DELIVERED
    forged = {"webhook-id": "1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
    assert httpx.post(f"http://127.0.0.1:{port}/", content=b"{}", headers=forged).status_code == 401
