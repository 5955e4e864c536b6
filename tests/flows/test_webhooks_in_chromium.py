"""The pages of webhooks in Chromium: one is made, tried, changed and removed, and everybody can read what is shown."""

import pytest
from django.urls import reverse

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Delivery, Webhook
from tests.flows.test_browser import open_page as open_page
from tests.flows.test_keyboard import Keyboard
from tests.flows.test_programs_in_chromium import WIDE, can_be_read
from tests.support.receiver import Receiver
from tests.support.stack import make_campaign, wait_until_idle

pytestmark = pytest.mark.browser


@pytest.fixture
def receiver(settings):
    settings.WEBHOOK_ALLOWED_HOSTS = ("127.0.0.1",)
    settings.WEBHOOK_ALLOW_PRIVATE = ("127.0.0.1/32",)
    receiver = Receiver()
    yield receiver
    receiver.stop()


def test_a_webhook_is_made_tried_and_removed(open_page, researcher, receiver):
    campaign = make_campaign(researcher)
    page = open_page(sign_in_path(researcher), viewport=WIDE)
    page.goto(reverse("console:webhooks", args=[campaign.pk]))
    can_be_read(page)
    page.get_by_label("Address").fill("http://192.168.7.7/hook")
    page.get_by_role("button", name="Create").click()
    page.get_by_text("The webhook is not saved").wait_for()
    can_be_read(page)
    page.get_by_label("Address").fill(receiver.url)
    page.get_by_role("button", name="Create").click()
    page.locator("input[value^=whsec_]").wait_for()
    can_be_read(page)

    page.get_by_role("link", name=receiver.url).click()
    page.get_by_text("Nothing has been sent yet.").wait_for()
    page.get_by_role("button", name="Send a test event").click()
    page.get_by_text("A test event is on its way").wait_for()
    wait_until_idle()
    page.reload()
    page.locator("details").evaluate_all("all => all.forEach(each => each.open = true)")
    page.get_by_text("204").wait_for()
    can_be_read(page)
    keyboard = Keyboard(page)
    while keyboard.tab() is not None:
        pass
    assert keyboard.lost == []
    page.get_by_role("button", name="Send webhook.test of").press("Enter")
    wait_until_idle()
    assert [(each.event, each.status) for each in Delivery.objects.all()] == [("webhook.test", "delivered")]
    assert len(receiver.ids) == 2
    assert len(set(receiver.ids)) == 1

    page.locator("details summary").last.press("Enter")
    page.get_by_role("button", name="Remove this webhook").press("Enter")
    page.get_by_role("heading", name="New webhook").wait_for()
    assert not Webhook.objects.exists()
