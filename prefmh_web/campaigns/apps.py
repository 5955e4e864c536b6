from django.apps import AppConfig


class CampaignsConfig(AppConfig):
    name = "prefmh_web.campaigns"
