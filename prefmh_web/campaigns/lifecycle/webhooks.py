"""The one door through which a campaign's webhooks are set up: made, changed, tried, removed, and told again.

    make, change, remove    of one webhook
    renew_secret            a new secret; the one before signs as well for a day
    test                    an event of no meaning
    send_again              an event that it was told of already, or should have been

A secret is computed from the site's SECRET_KEY and a random salt, so the database alone signs nothing, and nobody reads
a secret there. It is shown once, when it is made. Who changes SECRET_KEY changes all secrets.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import timedelta

from django.db import transaction
from django.utils import timezone
from django.utils.crypto import salted_hmac

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.models import Campaign, Delivery, Webhook
from prefmh_web.campaigns.models.webhooks import new_salt
from prefmh_web.endpoints import addresses
from prefmh_web.endpoints.errors import AddressRefused

MOST = 10
BOTH_SIGN_FOR = timedelta(days=1)
_PREFIX = "whsec_"


def make(campaign: Campaign, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """Make a webhook; return it with its secret, which nothing tells again.

    Raises:
        NotPossible: the address may not be called, an event is unknown, there are ten already, or the campaign is
            deleted.
    """
    url, events = _checked(url), _known(events)
    with transaction.atomic():
        # Locked: two at once are counted one after the other, and nobody deletes it meanwhile.
        found = Campaign.objects.select_for_update(no_key=True).filter(pk=campaign.pk).first()
        if found is None or found.status == Campaign.Status.DELETING:
            raise Deleted
        if found.webhooks.count() >= MOST:
            raise NotPossible(f"A campaign has at most {MOST} webhooks. Remove one that is not used any more.")
        webhook = Webhook.objects.create(campaign=found, url=url, events=events)
    return webhook, _shown(webhook.salt)


def change(webhook: Webhook, url: str, events: Sequence[str]) -> None:
    """Send to another address, or other events. What waits goes to the new address.

    Raises:
        NotPossible: the address may not be called, or an event is unknown.
    """
    url, events = _checked(url), _known(events)
    # Failures of another address say nothing of this one.
    failures = webhook.failures if url == webhook.url else 0
    Webhook.objects.filter(pk=webhook.pk).update(url=url, events=events, failures=failures)


def renew_secret(webhook: Webhook) -> str:
    """Give a webhook a new secret and return it. For a day, requests carry a signature by the one before as well."""
    with transaction.atomic():
        found = Webhook.objects.select_for_update(no_key=True).get(pk=webhook.pk)
        found.previous_salt, found.salt = found.salt, new_salt()
        found.previous_until = timezone.now() + BOTH_SIGN_FOR
        found.save(update_fields=["salt", "previous_salt", "previous_until"])
    return _shown(found.salt)


def signing_keys(webhook: Webhook) -> list[bytes]:
    """Return the secrets that sign now: the one of now, and after a change the one before."""
    keys = [_key(webhook.salt)]
    if webhook.previous_until is not None and webhook.previous_until > timezone.now():
        keys.append(_key(webhook.previous_salt))
    return keys


def remove(webhook: Webhook) -> None:
    """Remove a webhook with what waits for it and the log of its deliveries."""
    with transaction.atomic():
        # Locked: whoever notes an attempt has this lock, too, so that none is added meanwhile.
        Webhook.objects.select_for_update().filter(pk=webhook.pk).first()
        Webhook.objects.filter(pk=webhook.pk).delete()


def remove_all(campaign: Campaign) -> None:
    """Remove the webhooks of a campaign that is being deleted."""
    for webhook in campaign.webhooks.all():
        remove(webhook)


def test(webhook: Webhook) -> None:
    """Send a test event to a webhook."""
    with transaction.atomic():
        dispatch.webhook_tested(webhook)


def send_again(delivery: Delivery) -> None:
    """Send an event to its webhook once more, now, under the same id; the pauses between attempts begin anew."""
    waits = {"status": Delivery.Status.WAITING, "due_at": timezone.now(), "tries": 0}
    with transaction.atomic():
        Delivery.objects.filter(pk=delivery.pk).update(**waits)
        dispatch.deliver(delivery.webhook_id)


def _checked(url: str) -> str:
    try:
        return addresses.checked_url(url, addresses.WEBHOOKS)
    except AddressRefused as error:
        raise NotPossible(f"The webhook is not saved: {error.reason}.") from error


def _known(events: Sequence[str]) -> list[str]:
    """Return the events in their usual order."""
    unknown = [each for each in events if each not in Webhook.Event.values]
    if unknown or not events:
        what = f"There is no event “{unknown[0]}”." if unknown else "No event is chosen."
        raise NotPossible(f"The webhook is not saved. {what} Choose among: {', '.join(Webhook.Event.values)}.")
    return [each for each in Webhook.Event.values if each in events]


def _key(salt: str) -> bytes:
    """Return a secret: 32 bytes."""
    return salted_hmac("prefmh.webhooks", salt, algorithm="sha256").digest()


def _shown(salt: str) -> str:
    # As Standard Webhooks writes secrets, so that its libraries read them.
    return _PREFIX + base64.b64encode(_key(salt)).decode()
