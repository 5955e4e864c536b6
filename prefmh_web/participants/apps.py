from django.apps import AppConfig


class ParticipantsConfig(AppConfig):
    name = "prefmh_web.participants"

    def ready(self) -> None:
        from prefmh_web.campaigns.engine import rounds
        from prefmh_web.participants import budget

        rounds.weigh_by(budget.weigh)
