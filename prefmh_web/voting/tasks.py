"""Work of the annotation pages outside the request."""

from celery import shared_task

from prefmh_web.campaigns.engine import leases
from prefmh_web.participants import completion, erasure, limits


@shared_task
def sweep_leases() -> None:
    """End the leases whose time is over, so that their pairs go to somebody else; find room nobody has noted."""
    leases.expire()
    leases.look_again_where_nobody_is_asked()


@shared_task
def settle_parts() -> None:
    """Settle how the parts of people ended who have gone without looking; give the places of those away to others.
    Forget those who wanted to be forgotten and are paid by now.
    """
    completion.settle_overdue()
    limits.take_from_absent()
    erasure.carry_out()
