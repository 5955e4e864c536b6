from django.urls import path, re_path

from prefmh_web.annotate import views

app_name = "annotate"
urlpatterns = [
    path("join/<str:token>/", views.welcome, name="welcome"),
    path("join/<str:token>/vote/", views.vote, name="vote"),
    re_path(r"^pairs/(?P<lease>[0-9a-f-]{36})/(?P<side>left|right)/$", views.picture, name="picture"),
]
