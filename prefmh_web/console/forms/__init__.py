"""The forms behind a campaign's setup: fields in, a checked config out."""

from prefmh_web.console.forms.setup import SetupForms

__all__ = ["SetupForms"]
