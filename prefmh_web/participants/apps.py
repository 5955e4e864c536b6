from django.apps import AppConfig


class ParticipantsConfig(AppConfig):
    name = "prefmh_web.participants"

    def ready(self) -> None:
        from prefmh_web.campaigns.record import export
        from prefmh_web.participants import record

        export.also(record.tables)
