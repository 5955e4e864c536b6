"""Detectors: models that are asked greedily whether something is in a kept state, one request an answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sampler
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.models import Endpoint
from sampler import judges

ROLE = "detector"


def asks(
    endpoint: Endpoint, question: str, exhibit: Callable[[], judges.Exhibit]
) -> Callable[[], tuple[float, int] | EndpointError]:
    """Return what asks once: 1 for yes and 0 for no, and how many replies it took, or an error.

    Args:
        exhibit: called when it is asked about, since pictures are large.
    """

    def ask() -> tuple[float, int] | EndpointError:
        found = judge_calls.detection(endpoint, question, exhibit(), np.random.default_rng())
        return found.failure if found.failure is not None else (float(found.given[0]), found.asks[0])

    return ask


def check(endpoint: Endpoint) -> None:
    """Check before anything is asked that an endpoint may detect.

    Raises:
        OptionError: its test found that it sees no pictures, or its models take no temperature but 1.
    """
    why = ""
    if endpoint.can_images is False:
        why = f"must name a model that sees pictures; the test of {endpoint.name!r} has found that it does not"
    elif not Dialect(endpoint.dialect).server.sets_temperature:
        why = f"must name a model that can be asked at temperature 0, and {endpoint.name!r} takes no temperature but 1"
    if why:
        raise sampler.OptionError("--endpoint detector", why)
