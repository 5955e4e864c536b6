from django.urls import path

from prefmh_web.campaigns import lifecycle
from prefmh_web.console import downloads, views

app_name = "console"
urlpatterns = [
    path("", views.campaigns, name="campaigns"),
    path("campaigns/new/", views.create, name="create"),
    path("campaigns/<int:campaign_id>/", views.campaign, name="campaign"),
    path("campaigns/<int:campaign_id>/setup/", views.edit, name="edit"),
    path("campaigns/<int:campaign_id>/start/", views.transition, {"change": lifecycle.start}, name="start"),
    path("campaigns/<int:campaign_id>/delete/", views.discard, name="discard"),
    path("campaigns/<int:campaign_id>/pause/", views.transition, {"change": lifecycle.pause}, name="pause"),
    path("campaigns/<int:campaign_id>/resume/", views.transition, {"change": lifecycle.resume}, name="resume"),
    path("campaigns/<int:campaign_id>/files/<str:filename>", downloads.download, name="download"),
    path("campaigns/pictures/<int:state_id>/", views.picture, name="picture"),
]
