-- CreateTable
CREATE TABLE "sessions" (
    "id" UUID NOT NULL,
    "session_id" TEXT,
    "state" TEXT NOT NULL,
    "provider_user_id" TEXT,
    "client_user_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "note_template_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "partner_appointment_id" TEXT,
    "error_code" TEXT,
    "error_message" BYTEA,
    "date" TEXT,
    "session_created_at" TEXT,
    "session_duration_ms" BIGINT,
    "recording_duration_ms" BIGINT,
    "notes_revision" INTEGER NOT NULL DEFAULT 0,
    "event_state" TEXT,
    "event_provider_user_id" TEXT,
    "event_appointment_id" TEXT,
    "ai_notes_enabled" BOOLEAN,
    "ai_notes_final" BOOLEAN NOT NULL DEFAULT false,
    "heard_at" TIMESTAMPTZ(3),
    "news" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "news_at" TIMESTAMPTZ(3),
    "wanted_generation" INTEGER NOT NULL DEFAULT 0,
    "fetched_generation" INTEGER NOT NULL DEFAULT 0,
    "answers" INTEGER NOT NULL DEFAULT 0,
    "fetched_at" TIMESTAMPTZ(3),
    "gone_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "refused_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3),
    "lease_token" UUID,
    "lease_until" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "sessions_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session_documents" (
    "id" UUID NOT NULL,
    "session" UUID NOT NULL,
    "note_template_id" TEXT NOT NULL,
    "ordinal" INTEGER NOT NULL DEFAULT 0,
    "session_document_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "revision" INTEGER NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "superseded_at" TIMESTAMPTZ(3),

    CONSTRAINT "session_documents_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "document_revisions" (
    "document" UUID NOT NULL,
    "revision" INTEGER NOT NULL,
    "session_document_id" TEXT NOT NULL,
    "notes" BYTEA NOT NULL,
    "fetched_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "document_revisions_pkey" PRIMARY KEY ("document","revision")
);

-- CreateTable
CREATE TABLE "session_insights" (
    "session" UUID NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "transcript" BYTEA,
    "topics" BYTEA,
    "named_entities" BYTEA,
    "analytics" BYTEA,
    "fetched_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_insights_pkey" PRIMARY KEY ("session")
);

-- CreateTable
CREATE TABLE "processing_sessions" (
    "processing_id" TEXT NOT NULL,
    "session" UUID,
    "answer" BYTEA,
    "wanted_generation" INTEGER NOT NULL DEFAULT 0,
    "fetched_generation" INTEGER NOT NULL DEFAULT 0,
    "fault" TEXT,
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3),
    "lease_token" UUID,
    "lease_until" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "processing_sessions_pkey" PRIMARY KEY ("processing_id")
);

-- CreateTable
CREATE TABLE "processing_notices" (
    "delivery_id" TEXT NOT NULL,
    "payload" BYTEA NOT NULL,
    "processing_id" TEXT,
    "session_id" TEXT,
    "received_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "processing_notices_pkey" PRIMARY KEY ("delivery_id")
);

-- CreateTable
CREATE TABLE "compliance_jobs" (
    "id" UUID NOT NULL,
    "job_id" TEXT,
    "state" TEXT NOT NULL,
    "result" BYTEA,
    "news_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3),
    "lease_token" UUID,
    "lease_until" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "compliance_jobs_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "smart_edit_jobs" (
    "job_id" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "news_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "smart_edit_jobs_pkey" PRIMARY KEY ("job_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "sessions_session_id_key" ON "sessions"("session_id");

-- CreateIndex
CREATE INDEX "sessions_updated_at_id_idx" ON "sessions"("updated_at", "id");

-- CreateIndex
CREATE INDEX "sessions_due_at_idx" ON "sessions"("due_at");

-- CreateIndex
CREATE INDEX "sessions_provider_user_id_idx" ON "sessions"("provider_user_id");

-- CreateIndex
CREATE INDEX "sessions_client_user_ids_idx" ON "sessions" USING GIN ("client_user_ids");

-- CreateIndex
CREATE INDEX "sessions_partner_appointment_id_idx" ON "sessions"("partner_appointment_id");

-- CreateIndex
CREATE UNIQUE INDEX "session_documents_session_note_template_id_ordinal_key" ON "session_documents"("session", "note_template_id", "ordinal");

-- CreateIndex
CREATE INDEX "processing_sessions_due_at_idx" ON "processing_sessions"("due_at");

-- CreateIndex
CREATE UNIQUE INDEX "compliance_jobs_job_id_key" ON "compliance_jobs"("job_id");

-- CreateIndex
CREATE INDEX "compliance_jobs_due_at_idx" ON "compliance_jobs"("due_at");

-- CreateIndex
CREATE INDEX "sessions_news_at_idx" ON "sessions"("news_at");

-- CreateIndex
CREATE INDEX "compliance_jobs_news_at_idx" ON "compliance_jobs"("news_at");

-- CreateIndex
CREATE INDEX "smart_edit_jobs_news_at_idx" ON "smart_edit_jobs"("news_at");
