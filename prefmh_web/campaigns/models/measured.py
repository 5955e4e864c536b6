"""What was measured of objects, kept so that pages need not measure them again. Written by `proposals/measuring.py`.

Not part of the record: anybody can measure the objects again.
"""

from django.db import models

from prefmh_web.campaigns.models.objects import State


class Measured(models.Model):
    """The numbers that were measured of one object, by name; none where it could not be measured."""

    state = models.OneToOneField(State, models.CASCADE, primary_key=True, related_name="measured")
    numbers = models.JSONField()

    def __str__(self) -> str:
        return f"measures of state {self.state_id}"
