from django.apps import AppConfig


class ParticipantsConfig(AppConfig):
    name = "prefmh_web.participants"
