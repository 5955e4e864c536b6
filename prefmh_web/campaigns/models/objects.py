"""What a campaign compares: the file the objects come from, the objects, and what was measured of them."""

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from prefmh_web.campaigns.models.campaign import Campaign


class Catalog(models.Model):
    """The file a campaign's objects come from, and how far its reading is."""

    class Status(models.TextChoices):
        READING = "reading"
        READY = "ready"
        REFUSED = "refused"

    campaign = models.OneToOneField(Campaign, models.CASCADE, related_name="catalog")
    file = models.FileField(upload_to="uploads/")
    filename = models.CharField(max_length=255)
    status = models.CharField(max_length=8, choices=Status, default=Status.READING)
    # A new file or a new neighbour count raises it, so that a reading begun before can tell that it is stale.
    revision = models.PositiveIntegerField(default=1)
    # A file whose reading takes the process down must not do so at every start.
    attempts = models.PositiveSmallIntegerField(default=0)
    rows_read = models.PositiveIntegerField(default=0)
    rows_total = models.PositiveIntegerField(null=True)
    error = models.TextField(blank=True)
    # [[where, reason], ...]; beyond what is kept, [words, words, how many more]
    refusals = models.JSONField(default=list)
    # The names of the further columns that were kept, in the order of the file.
    columns = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.filename


class State(models.Model):
    """One object of a campaign's space, by its number: the place in the catalog, or `sampler.state_number`."""

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="states")
    place = models.PositiveIntegerField()
    content = models.TextField()
    # Of an object that a chain has made: what the space decodes the state from.
    code = models.TextField(blank=True)
    # Of a catalog's objects only.
    weight = models.FloatField(null=True, validators=[MinValueValidator(0)])
    neighbours = models.JSONField(default=list)
    # Of a catalog's objects: what the file has in its further columns, by their names.
    columns = models.JSONField(default=dict)
    # Of images, unless they are quickly made from their code.
    picture = models.FileField(upload_to="pictures/", blank=True)
    media_type = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ("place",)
        constraints = (
            models.UniqueConstraint(fields=("campaign", "place"), name="state_once_per_place"),
            models.CheckConstraint(name="state_weight_positive", condition=Q(weight__gt=0)),
        )

    def __str__(self) -> str:
        return self.content[:80]


class Measured(models.Model):
    """The numbers that were measured of one object, by name; none where it could not be measured. Written by
    `proposals/measuring.py`. Not part of the record: anybody can measure the objects again.
    """

    state = models.OneToOneField(State, models.CASCADE, primary_key=True, related_name="measured")
    numbers = models.JSONField()

    def __str__(self) -> str:
        return f"measures of state {self.state_id}"
