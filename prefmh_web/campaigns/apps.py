from importlib import import_module

from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "prefmh_web.campaigns"

    def ready(self):
        # Celery finds tasks by itself in workers only; here they are called by name.
        import_module("prefmh_web.campaigns.tasks")
