from django.apps import AppConfig


class SetupConfig(AppConfig):
    name = "prefmh_web.setup"
