from django.urls import path

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import panels as seats
from prefmh_web.campaigns.lifecycle import warm_up
from prefmh_web.console.views import (
    campaigns,
    downloads,
    endpoints,
    invitations,
    judges,
    members,
    panels,
    participants,
    people,
    problems,
)

app_name = "console"
urlpatterns = [
    path("", campaigns.campaigns, name="campaigns"),
    path("campaigns/new/", campaigns.create, name="create"),
    path("campaigns/new/crowds/", campaigns.crowds, name="crowds"),
    path("campaigns/<int:campaign_id>/", campaigns.campaign, name="campaign"),
    path("campaigns/<int:campaign_id>/setup/", campaigns.edit, name="edit"),
    path("campaigns/<int:campaign_id>/start/", campaigns.transition, {"change": lifecycle.request_start}, name="start"),
    path("campaigns/<int:campaign_id>/delete/", campaigns.discard, name="discard"),
    path("campaigns/<int:campaign_id>/pause/", campaigns.transition, {"change": lifecycle.pause}, name="pause"),
    path("campaigns/<int:campaign_id>/resume/", campaigns.transition, {"change": lifecycle.resume}, name="resume"),
    path(
        "campaigns/<int:campaign_id>/warm-up/end/",
        campaigns.transition,
        {"change": warm_up.end_warm_up},
        name="end-warm-up",
    ),
    path("campaigns/<int:campaign_id>/panel/", panels.panel, name="panel"),
    path("campaigns/<int:campaign_id>/panel/<int:number>/remind/", panels.remind, name="remind"),
    path("campaigns/<int:campaign_id>/panel/end/", campaigns.transition, {"change": seats.end}, name="end-panel"),
    path("campaigns/<int:campaign_id>/members/", members.add, name="add-member"),
    path("campaigns/<int:campaign_id>/members/<int:member_id>/remove/", members.remove, name="remove-member"),
    path("campaigns/<int:campaign_id>/invitations/", invitations.create, name="invite"),
    path("campaigns/<int:campaign_id>/invitations/<int:invitation_id>/revoke/", invitations.revoke, name="revoke"),
    path("campaigns/<int:campaign_id>/files/<str:filename>", downloads.download, name="download"),
    path("campaigns/<int:campaign_id>/participants/", participants.participants, name="participants"),
    path("campaigns/<int:campaign_id>/participants/payments.csv", participants.pay, name="payments"),
    path("campaigns/<int:campaign_id>/participants/answers.csv", participants.answers, name="answers"),
    path("campaigns/<int:campaign_id>/people/", people.people, name="people"),
    path("campaigns/<int:campaign_id>/people/<int:annotator_id>/", people.person, name="person"),
    path("campaigns/<int:campaign_id>/people/<int:annotator_id>/end/", people.end, name="end-part"),
    path("campaigns/<int:campaign_id>/people/<int:annotator_id>/notes/", people.note, name="add-note"),
    path("campaigns/<int:campaign_id>/people/<int:annotator_id>/bonus/", people.bonus, name="bonus"),
    path("campaigns/<int:campaign_id>/protocol/", participants.protocol, name="protocol"),
    path("campaigns/<int:campaign_id>/participants/forget/", participants.forget, name="forget-participants"),
    path("campaigns/<int:campaign_id>/problems/", problems.problems, name="problems"),
    path("campaigns/<int:campaign_id>/judges/try-again/", judges.try_again, name="try-again"),
    path("campaigns/<int:campaign_id>/judges/accept/", judges.accept, name="accept-model"),
    path("endpoints/", endpoints.endpoints, name="endpoints"),
    path("endpoints/new/", endpoints.edit, name="new-endpoint"),
    path("endpoints/<int:endpoint_id>/", endpoints.edit, name="edit-endpoint"),
    path("endpoints/<int:endpoint_id>/test/", endpoints.test, name="test-endpoint"),
    path("endpoints/<int:endpoint_id>/remove/", endpoints.remove, name="remove-endpoint"),
    path("campaigns/pictures/<int:state_id>/", campaigns.picture, name="picture"),
]
