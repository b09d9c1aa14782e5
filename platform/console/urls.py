from django.urls import include, path

app_name = "console"
urlpatterns = [
    path("", include("console.manager.urls")),
    path("", include("console.researcher.urls")),
    path("api/v1/", include("console.api.urls")),
]
