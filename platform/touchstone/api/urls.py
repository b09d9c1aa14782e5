from django.urls import path

from touchstone.api import views

urlpatterns = [
    path("schema", views.DescriptionView.as_view(), name="api-schema"),
    path("me", views.MeView.as_view(), name="api-me"),
]
