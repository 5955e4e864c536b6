"""The record of a campaign: how an export is written, how it is read, and how every decision of it is made again."""

from sampler.record import tables

__all__ = ["tables"]
