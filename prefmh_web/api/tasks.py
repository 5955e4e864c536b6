"""What programs are told outside the request."""

from celery import shared_task

from prefmh_web.api import delivery
from prefmh_web.campaigns import dispatch


@shared_task
def deliver(webhook_id: int) -> None:
    """Send what is due first for a webhook."""
    delivery.deliver(webhook_id)


@shared_task
def sweep_webhooks() -> None:
    """Find what is due and what no task was told of."""
    for webhook_id in delivery.due():
        dispatch.deliver(webhook_id)
