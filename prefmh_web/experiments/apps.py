from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    name = "prefmh_web.experiments"
