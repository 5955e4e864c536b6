from django.urls import path

from prefmh_web.annotate import views

app_name = "annotate"
urlpatterns = [
    path("join/<str:token>/", views.welcome, name="welcome"),
    path("join/<str:token>/vote/", views.vote, name="vote"),
    path("pairs/pictures/<int:state_id>/", views.picture, name="picture"),
]
