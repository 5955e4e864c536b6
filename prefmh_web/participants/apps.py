from django.apps import AppConfig


class ParticipantsConfig(AppConfig):
    name = "prefmh_web.participants"

    def ready(self) -> None:
        from prefmh_web.campaigns.engine import rounds
        from prefmh_web.campaigns.lifecycle import deletion, extension, status
        from prefmh_web.campaigns.record import export
        from prefmh_web.participants import budget, erasure, protocol_file, record, recruiting

        export.also(record.tables)
        export.also_documents(protocol_file.documents)
        status.also_demand(recruiting.demand_startable)
        status.also_demand(budget.demand_fit)
        extension.also_demand(budget.demand_covers)
        rounds.weigh_by(budget.weigh)
        deletion.also_delete(erasure.forget_all)
