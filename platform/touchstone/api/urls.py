from django.urls import path

from touchstone.api import guide, views, webhook_views

urlpatterns = [
    path("", guide.guide, name="api-guide"),
    path("schema", views.DescriptionView.as_view(), name="api-schema"),
    path("me", views.MeView.as_view(), name="api-me"),
    path("webhooks", webhook_views.WebhooksView.as_view(), name="api-webhooks"),
    path("webhooks/<uuid:webhook_id>", webhook_views.WebhookView.as_view(), name="api-webhook"),
    path("webhooks/<uuid:webhook_id>/test", webhook_views.WebhookTestView.as_view(), name="api-webhook-test"),
    path(
        "webhooks/<uuid:webhook_id>/deliveries",
        webhook_views.DeliveriesView.as_view(),
        name="api-webhook-deliveries",
    ),
]
