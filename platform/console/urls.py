from django.urls import include, path

from console import contents

app_name = "console"
urlpatterns = [
    path("", include("console.manager.urls")),
    path("collections/<uuid:collection_id>/documents/", contents.documents, name="documents"),
    path("collections/<uuid:collection_id>/documents/<int:document_pk>/", contents.document, name="document"),
    path(
        "collections/<uuid:collection_id>/documents/<int:document_pk>/text/",
        contents.document_frame,
        name="document-frame",
    ),
    path("collections/<uuid:collection_id>/topics/", contents.topics, name="collection-topics"),
    path("collections/<uuid:collection_id>/topics/<int:topic_pk>/", contents.topic, name="topic"),
    path("", include("console.researcher.urls")),
    path("api/v1/", include("console.api.urls")),
]
