from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    name = "prefmh_web.console"
