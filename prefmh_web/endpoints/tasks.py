"""Entry points of the workers."""

from celery import shared_task

from prefmh_web.endpoints import probe


@shared_task
def run_test(test_id: int) -> None:
    """Test an endpoint."""
    try:
        probe.run(test_id)
    except Exception:  # whatever it is, whoever waits for the test is told; it is raised all the same
        probe.note_trouble(test_id)
        raise
