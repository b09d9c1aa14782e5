"""The addresses of the API, below /api/v1/."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from analytics.services.exports import EXPORTS
from analytics.services.result_tables import RESULT_TABLES
from console.api import (
    analyses,
    assessors,
    audits,
    campaigns,
    collections,
    contents,
    corrections,
    crowd,
    draws,
    evidence,
    exports,
    families,
    imports,
    jobs,
    judgments,
    leases,
    looks,
    me,
    old_words,
    opening,
    planner,
    plots,
    questions,
    releases,
    results,
    reuse,
    rounds,
    runs,
    shares,
    tables,
    taking_back,
    topic_checks,
    training,
)


class Picture(StringConverter):
    """A picture that there is: another name is no address."""

    regex = "|".join(sorted(plots.PICTURES, key=len, reverse=True))


class TableKind(StringConverter):
    """A table of results that there is."""

    regex = "|".join(one.key for one in RESULT_TABLES)


register_converter(Picture, "picture")
register_converter(TableKind, "result_table")
COLLECTION, CAMPAIGN = "collections/<uuid:collection_id>", "campaigns/<uuid:campaign_id>"
ASSESSOR = f"{CAMPAIGN}/assessors/<int:assessor_id>"
MINE = "me/campaigns/<uuid:campaign_id>"
RELEASE = f"{CAMPAIGN}/releases/<uuid:release_id>"
urlpatterns = [
    path("collections", collections.Collections.as_view(), name="api-collections"),
    path("deleted-collections", collections.DeletedCollections.as_view(), name="api-deleted-collections"),
    path("deleted-campaigns", collections.DeletedCampaigns.as_view(), name="api-deleted-campaigns"),
    path(COLLECTION, collections.OneCollection.as_view(), name="api-collection"),
    path(f"{COLLECTION}/delete", collections.CollectionDelete.as_view(), name="api-collection-delete"),
    path(f"{COLLECTION}/restore", collections.CollectionRestore.as_view(), name="api-collection-restore"),
    path(f"{COLLECTION}/members", collections.CollectionMembers.as_view(), name="api-members"),
    path(f"{COLLECTION}/topics", contents.Topics.as_view(), name="api-topics"),
    path(f"{COLLECTION}/documents", contents.Documents.as_view(), name="api-documents"),
    path(f"{COLLECTION}/documents/<int:document_pk>", contents.OneDocument.as_view(), name="api-document"),
    path(
        f"{COLLECTION}/documents/<int:document_pk>/versions",
        corrections.DocumentVersions.as_view(),
        name="api-document-versions",
    ),
    path(
        f"{COLLECTION}/topics/<int:topic_pk>/versions",
        corrections.TopicVersions.as_view(),
        name="api-topic-versions",
    ),
    path(
        f"{COLLECTION}/documents/<int:document_pk>/old-words",
        old_words.DocumentOldWords.as_view(),
        name="api-document-old-words",
    ),
    path(
        f"{COLLECTION}/topics/<int:topic_pk>/old-words",
        old_words.TopicOldWords.as_view(),
        name="api-topic-old-words",
    ),
    path(
        f"{COLLECTION}/gold-answers/<int:answer_pk>/versions",
        corrections.GoldVersions.as_view(),
        name="api-gold-versions",
    ),
    path(
        f"{COLLECTION}/imports/<int:import_id>/remove",
        corrections.ImportRemoval.as_view(),
        name="api-import-remove",
    ),
    path(f"{COLLECTION}/runs", contents.Runs.as_view(), name="api-runs"),
    path(f"{COLLECTION}/runs-set-aside", contents.RunsSetAside.as_view(), name="api-runs-set-aside"),
    path(f"{COLLECTION}/runs/<int:run_pk>", contents.OneRun.as_view(), name="api-run"),
    path(f"{COLLECTION}/scores", contents.ScoreLists.as_view(), name="api-scores"),
    path(f"{COLLECTION}/gold-answers", contents.GoldAnswers.as_view(), name="api-gold-answers"),
    path(
        f"{COLLECTION}/runs/<int:run_pk>/set-aside",
        taking_back.RunSetAside.as_view(),
        name="api-run-set-aside",
    ),
    path(f"{COLLECTION}/runs/<int:run_pk>/take-in", taking_back.RunTakeIn.as_view(), name="api-run-take-in"),
    path("imports/<uuid:import_id>/rests", taking_back.ImportRests.as_view(), name="api-import-rests"),
    path(
        "imports/<uuid:import_id>/take-back",
        taking_back.ImportTakeBack.as_view(),
        name="api-import-take-back",
    ),
    path(f"{COLLECTION}/imports", imports.Imports.as_view(), name="api-imports"),
    path("imports/<uuid:import_id>", imports.OneImport.as_view(), name="api-import"),
    path("imports/<uuid:import_id>/replace", taking_back.ImportReplace.as_view(), name="api-import-replace"),
    path("imports/<uuid:import_id>/keep", imports.ImportKeep.as_view(), name="api-import-keep"),
    path(f"{COLLECTION}/events", jobs.CollectionEvents.as_view(), name="api-collection-events"),
    path("campaigns", campaigns.Campaigns.as_view(), name="api-campaigns"),
    path(CAMPAIGN, campaigns.OneCampaign.as_view(), name="api-campaign"),
    path(f"{CAMPAIGN}/scale", campaigns.CampaignScale.as_view(), name="api-scale"),
    path(f"{CAMPAIGN}/state", opening.CampaignState.as_view(), name="api-campaign-state"),
    path(f"{CAMPAIGN}/progress", campaigns.CampaignProgress.as_view(), name="api-progress"),
    path(f"{CAMPAIGN}/delete", campaigns.CampaignDelete.as_view(), name="api-campaign-delete"),
    path(f"{CAMPAIGN}/restore", campaigns.CampaignRestore.as_view(), name="api-campaign-restore"),
    path(f"{CAMPAIGN}/topic-teams", campaigns.TopicTeams.as_view(), name="api-topic-teams"),
    path(f"{CAMPAIGN}/events", jobs.CampaignEvents.as_view(), name="api-campaign-events"),
    path(f"{CAMPAIGN}/assessors", assessors.Assessors.as_view(), name="api-assessors"),
    path(ASSESSOR, assessors.OneAssessor.as_view(), name="api-assessor"),
    path(f"{ASSESSOR}/status", assessors.AssessorStatus.as_view(), name="api-assessor-status"),
    path(f"{ASSESSOR}/requeue", assessors.AssessorRequeue.as_view(), name="api-assessor-requeue"),
    path(f"{ASSESSOR}/messages", assessors.AssessorMessages.as_view(), name="api-assessor-messages"),
    path(f"{ASSESSOR}/events", jobs.AssessorEvents.as_view(), name="api-assessor-events"),
    path(f"{ASSESSOR}/training-attempts", assessors.TrainingAttempts.as_view(), name="api-training-attempts"),
    path(f"{CAMPAIGN}/invitations", crowd.Invitations.as_view(), name="api-invitations"),
    path(
        f"{CAMPAIGN}/invitations/<int:invitation_id>/revoke",
        crowd.InvitationRevoke.as_view(),
        name="api-invitation-revoke",
    ),
    path(f"{CAMPAIGN}/market", crowd.Market.as_view(), name="api-market"),
    path(f"{CAMPAIGN}/participants", crowd.Participants.as_view(), name="api-participants"),
    path(f"{CAMPAIGN}/participants/erase", crowd.ParticipantsErase.as_view(), name="api-participants-erase"),
    path(f"{CAMPAIGN}/codes", crowd.Codes.as_view(), name="api-codes"),
    path(f"{CAMPAIGN}/consent", crowd.Consent.as_view(), name="api-consent"),
    path(f"{CAMPAIGN}/training", training.Training.as_view(), name="api-training"),
    path(f"{CAMPAIGN}/training/items", training.TrainingItems.as_view(), name="api-training-items"),
    path(f"{CAMPAIGN}/training/rules", training.TrainingRules.as_view(), name="api-training-rules"),
    path(
        f"{CAMPAIGN}/training/explanations",
        training.TrainingExplanations.as_view(),
        name="api-training-explanations",
    ),
    path(f"{CAMPAIGN}/training/trainees", training.Trainees.as_view(), name="api-trainees"),
    path(f"{CAMPAIGN}/items", judgments.Items.as_view(), name="api-items"),
    path(f"{CAMPAIGN}/items/<uuid:item_id>", judgments.OneItem.as_view(), name="api-item"),
    path(
        f"{CAMPAIGN}/judgment-files/<slug:file_format>",
        judgments.JudgmentFile.as_view(),
        name="api-judgment-file",
    ),
    *(
        path(f"{CAMPAIGN}/{one.key}", exports.export_view(one).as_view(), name=f"api-{one.key}")
        for one in EXPORTS
    ),
    path(f"{CAMPAIGN}/judgment-log", judgments.JudgmentLog.as_view(), name="api-judgment-log"),
    path(f"{CAMPAIGN}/adjudications", judgments.Adjudications.as_view(), name="api-adjudications"),
    path(f"{CAMPAIGN}/leases", leases.Leases.as_view(), name="api-leases"),
    path(
        f"{CAMPAIGN}/leases/release-expired",
        leases.LeasesReleaseExpired.as_view(),
        name="api-leases-release-expired",
    ),
    path(f"{CAMPAIGN}/leases/<uuid:token>/release", leases.LeaseRelease.as_view(), name="api-lease-release"),
    path("jobs", jobs.Jobs.as_view(), name="api-jobs"),
    path("jobs/<uuid:job_id>", jobs.OneJob.as_view(), name="api-job"),
    path("jobs/<uuid:job_id>/cancel", jobs.JobCancel.as_view(), name="api-job-cancel"),
    path("me/campaigns", me.MyCampaigns.as_view(), name="api-my-campaigns"),
    path(f"{MINE}/judgments", me.MyJudgments.as_view(), name="api-my-judgments"),
    path(f"{MINE}/consent", me.MyConsent.as_view(), name="api-my-consent"),
    path(f"{MINE}/training", me.MyTraining.as_view(), name="api-my-training"),
    path(f"{MINE}/completion", me.MyCompletion.as_view(), name="api-my-completion"),
    path(f"{CAMPAIGN}/questions", questions.Questions.as_view(), name="api-questions"),
    path(
        f"{CAMPAIGN}/questions/<int:message_id>/answers",
        questions.QuestionReply.as_view(),
        name="api-question-answer",
    ),
    path(
        f"{CAMPAIGN}/questions/<int:message_id>/close",
        questions.QuestionClose.as_view(),
        name="api-question-close",
    ),
    path("me/messages", me.MyMessages.as_view(), name="api-my-messages"),
    path("me/messages/<int:message_id>/read", me.MyMessageRead.as_view(), name="api-my-message-read"),
    path(f"{CAMPAIGN}/looks", looks.Looks.as_view(), name="api-looks"),
    path(f"{CAMPAIGN}/forecast", draws.ForecastView.as_view(), name="api-forecast"),
    path(f"{CAMPAIGN}/draws", draws.DrawsView.as_view(), name="api-draws"),
    path(f"{CAMPAIGN}/draws/<int:batch>/frame", draws.FrameView.as_view(), name="api-frame"),
    path(f"{CAMPAIGN}/audits", audits.AuditsView.as_view(), name="api-audits"),
    path(f"{CAMPAIGN}/audits/schedule", audits.AuditScheduleView.as_view(), name="api-audit-schedule"),
    path(
        f"{CAMPAIGN}/audits/<int:sequence>/sample.csv",
        audits.AuditSampleView.as_view(),
        name="api-audit-sample",
    ),
    path(f"{CAMPAIGN}/topic-checks", topic_checks.TopicChecksView.as_view(), name="api-topic-checks"),
    path(
        f"{CAMPAIGN}/topic-checks/<int:sequence>/findings",
        topic_checks.TopicFindingsView.as_view(),
        name="api-topic-findings",
    ),
    path(f"{CAMPAIGN}/draws/jobs/<uuid:job_id>", draws.CampaignJobView.as_view(), name="api-campaign-job"),
    path(f"{CAMPAIGN}/measures", results.MeasuresView.as_view(), name="api-measures"),
    path(f"{CAMPAIGN}/shares", shares.SharesView.as_view(), name="api-shares"),
    path(f"{CAMPAIGN}/estimates", results.EstimatesView.as_view(), name="api-estimates"),
    path(f"{CAMPAIGN}/comparisons", results.ComparisonsView.as_view(), name="api-comparisons"),
    path(f"{CAMPAIGN}/comparison", results.ComparisonView.as_view(), name="api-comparison"),
    path(f"{CAMPAIGN}/ranking", results.RankingView.as_view(), name="api-ranking"),
    path(f"{CAMPAIGN}/computations", evidence.ComputationsView.as_view(), name="api-computations"),
    path(
        f"{CAMPAIGN}/computations/<int:computation_id>",
        evidence.ComputationView.as_view(),
        name="api-computation",
    ),
    path(f"{CAMPAIGN}/confusions", evidence.ConfusionsView.as_view(), name="api-confusions"),
    path(f"{CAMPAIGN}/flags", evidence.FlagsView.as_view(), name="api-flags"),
    path(f"{CAMPAIGN}/audit-forecasts", evidence.ForecastsView.as_view(), name="api-audit-forecasts"),
    path(f"{CAMPAIGN}/disputed-items", evidence.DisputedItemsView.as_view(), name="api-disputed-items"),
    path(f"{CAMPAIGN}/plots", plots.PicturesView.as_view(), name="api-plots"),
    path(f"{CAMPAIGN}/plots/<picture:plot>", plots.PictureView.as_view(), name="api-plot"),
    path(f"{CAMPAIGN}/tables/<result_table:table>", tables.TableView.as_view(), name="api-table"),
    path(f"{CAMPAIGN}/runs", runs.UploadView.as_view(), name="api-run-uploads"),
    path(f"{CAMPAIGN}/run-estimate", runs.RunEstimateView.as_view(), name="api-run-estimate"),
    path(f"{CAMPAIGN}/releases", releases.ReleasesView.as_view(), name="api-releases"),
    path(RELEASE, releases.ReleaseView.as_view(), name="api-release"),
    path(f"{RELEASE}/download", releases.DownloadView.as_view(), name="api-release-download"),
    path(f"{RELEASE}/citation", releases.CitationView.as_view(), name="api-release-citation"),
    path(f"{RELEASE}/changes", releases.ChangesView.as_view(), name="api-release-changes"),
    path(f"{RELEASE}/withdraw", releases.WithdrawView.as_view(), name="api-release-withdraw"),
    path(f"{RELEASE}/forget-key", releases.ForgetKeyView.as_view(), name="api-release-forget-key"),
    path(f"{CAMPAIGN}/analyses", analyses.AnalysesView.as_view(), name="api-analyses"),
    path(f"{CAMPAIGN}/conditions", analyses.ConditionsView.as_view(), name="api-conditions"),
    path(f"{CAMPAIGN}/families", families.FamiliesView.as_view(), name="api-families"),
    path(f"{CAMPAIGN}/planner", planner.PlannerView.as_view(), name="api-planner"),
    path("rounds", rounds.RoundsView.as_view(), name="api-rounds"),
    path("rounds/<uuid:job_id>", rounds.RoundsResultView.as_view(), name="api-rounds-result"),
    path(f"{CAMPAIGN}/reuse", reuse.ReuseView.as_view(), name="api-reuse"),
]
