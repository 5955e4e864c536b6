"""Endpoints, how they are doing, and what they have cost.

What is written by whom: an endpoint's own fields by its owner's form and `probe.py`; its circuit and its usage by
`limits.py`, its tests by `probe.py`. No key, no prompt and no reply is stored.
"""

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import BaseValidator, MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import CombinedExpression
from django.utils import timezone

from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.servers import Dialect

_PRICE = [MinValueValidator(0), MaxValueValidator(1_000_000)]


def _up_to(most: int) -> list[BaseValidator]:
    """Return what lets whole numbers from 1 on pass, up to a largest one."""
    return [MinValueValidator(1), MaxValueValidator(most)]


class Endpoint(models.Model):
    """A model on a server.

    `api_key_variable` is the name of the environment variable that holds the key, never the key. Prices are per
    million tokens, in whatever currency the owner counts.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="endpoints")
    name = models.CharField(max_length=120)
    base_url = models.CharField(max_length=500, help_text="as in https://api.example.com/v1")
    model = models.CharField(max_length=200, help_text="the model's name on that server")
    dialect = models.CharField(max_length=20, choices=Dialect, default=Dialect.OPENAI)
    # Whether its owner says so; the test finds it out otherwise.
    dialect_is_declared = models.BooleanField(default=False)
    api_key_variable = models.CharField(max_length=100, blank=True)
    concurrency = models.PositiveSmallIntegerField(
        default=128, validators=_up_to(1024), help_text="most requests at a time"
    )
    # What its provider allows in any minute, over all processes; null for as much as it serves.
    requests_per_minute = models.PositiveIntegerField(null=True, blank=True, validators=_up_to(1_000_000))
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True, validators=_up_to(1_000_000_000))
    timeout_s = models.PositiveSmallIntegerField(default=60, validators=_up_to(600))
    input_price = models.FloatField(null=True, blank=True, validators=_PRICE)
    output_price = models.FloatField(null=True, blank=True, validators=_PRICE)
    # The most that its model may think before an answer; null where it is not to think.
    thinking_tokens = models.PositiveIntegerField(null=True, blank=True, validators=_up_to(100_000))
    created_at = models.DateTimeField(auto_now_add=True)

    # What `probe.py` saw: null until it was tried.
    tested_at = models.DateTimeField(null=True, blank=True, editable=False)
    can_constrain = models.BooleanField(null=True, editable=False)
    can_log_probabilities = models.BooleanField(null=True, editable=False)
    can_token_ids = models.BooleanField(null=True, editable=False)
    can_images = models.BooleanField(null=True, editable=False)
    can_vary = models.BooleanField(null=True, editable=False)
    # What *Test* saw of its distribution (`truth.py`): whether it is untruncated, null where not tested, and why.
    samples_untruncated = models.BooleanField(null=True, editable=False)
    sampling_evidence = models.CharField(max_length=300, blank=True, editable=False)
    context_tokens = models.PositiveIntegerField(null=True, editable=False)
    # What *Test* saw of each ability and of the distribution; empty until all of that was tried.
    profile = models.JSONField(default=dict, blank=True, editable=False)

    # The circuit: closed while `open_until` is null; see `limits.py`.
    failures = models.PositiveIntegerField(default=0, editable=False)
    open_until = models.DateTimeField(null=True, editable=False)
    last_error = models.CharField(max_length=300, blank=True, editable=False)
    last_error_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        ordering = ("name", "pk")
        constraints = (models.UniqueConstraint(fields=("owner", "name"), name="endpoint_name_once_per_owner"),)

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Check the base URL and the key's variable against the site's settings."""
        # Imported here: they bring an HTTP client, and all processes load this model.
        from yarl import URL

        from prefmh_web.endpoints.addresses import check_key, checked_base_url

        try:
            self.base_url = checked_base_url(self.base_url)
        except EndpointError as error:
            raise ValidationError({"base_url": error.reason}) from None
        try:
            check_key(self.api_key_variable, URL(self.base_url).host or "")
        except EndpointError as error:
            raise ValidationError({"api_key_variable": error.reason}) from None

    @property
    def is_limited_per_minute(self) -> bool:
        """Whether requests or tokens a minute are limited."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None

    @property
    def is_circuit_open(self) -> bool:
        """Whether the circuit is open: nothing is sent until `open_until`."""
        return self.open_until is not None and self.open_until > timezone.now()

    @property
    def is_priced(self) -> bool:
        """Whether it is known what its tokens cost; 0 is a price."""
        return self.input_price is not None and self.output_price is not None

    def forget_test(self) -> None:
        """Take back what was seen of it, and close its circuit: it is another server or model now. Not saved yet."""
        for field in self._meta.concrete_fields:
            # All that its owner cannot write.
            if not field.editable and field.name != "created_at":
                setattr(self, field.name, field.get_default())

    @property
    def totals(self) -> "Usage":
        """What it has taken since ever. One query."""
        return Usage.objects.filter(endpoint=self).first() or Usage(endpoint=self)


# What makes it this server and this model, as its owner says.
WHERE = ("base_url", "model", "api_key_variable", "dialect_is_declared", "thinking_tokens")


def as_it_was(endpoint: Endpoint) -> models.QuerySet[Endpoint]:
    """Return the row of an endpoint for an update; none if its owner has removed it, or made another of it, since."""
    return Endpoint.objects.filter(pk=endpoint.pk, **{name: getattr(endpoint, name) for name in WHERE})


class EndpointTest(models.Model):
    """One *Test* of an endpoint, made by a worker.

    `report` is what it saw in words, once it is over: `probe.py` says which; `until` is set while a worker is at it.
    """

    class Status(models.TextChoices):
        """How far it is. What came of it, good or bad, is its report."""

        RUNNING = "running"
        DONE = "done"
        STOPPED = "stopped"

    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="tests")
    begun_at = models.DateTimeField(auto_now_add=True)
    status = models.CharField(max_length=8, choices=Status, default=Status.RUNNING)
    reason = models.CharField(max_length=300, blank=True)
    until = models.DateTimeField(null=True)
    requests = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("endpoint",), condition=Q(status="running"), name="endpoint_tested_once"),
        )

    def __str__(self) -> str:
        return f"test {self.pk} of {self.endpoint_id}"

    @property
    def is_running(self) -> bool:
        return self.status == self.Status.RUNNING

    @property
    def is_abandoned(self) -> bool:
        """Whether its worker has died: it says every second that it lives."""
        return self.is_running and self.until is not None and self.until <= timezone.now()


class Counts(models.Model):
    """What some requests have taken.

    The cost is in the currency of the endpoints' prices, at the prices of the time. `seconds` are those of answered
    requests; `unreadable` replies, neither label nor rating, are among the answered. `unpriced` requests had tokens,
    and no known price.
    """

    NAMES = ("requests", "failed", "unreadable", "unpriced", "tokens_in", "tokens_out", "seconds", "cost")

    requests = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    unreadable = models.PositiveBigIntegerField(default=0)
    unpriced = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0)
    cost = models.FloatField(default=0)

    class Meta:
        abstract = True

    @property
    def answered(self) -> int:
        return self.requests - self.failed

    @classmethod
    def with_more(cls, tally: object) -> dict[str, CombinedExpression]:
        """Return what an update of a row sets to add what a tally has counted, without a look at the row."""
        return {name: F(name) + getattr(tally, name) for name in cls.NAMES}


class Usage(Counts):
    """What one endpoint has taken."""

    endpoint = models.OneToOneField(Endpoint, models.CASCADE, primary_key=True)

    def __str__(self) -> str:
        return f"usage of {self.endpoint_id}"

    @property
    def mean_seconds(self) -> float | None:
        """Of an answered request; None where there was none."""
        return self.seconds / self.answered if self.answered else None
