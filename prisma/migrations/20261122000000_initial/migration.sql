-- Partial indexes, storage and the triggers of the audit log are defined only here, because schema.prisma cannot express
-- them. `npm run check` compares the rest with schema.prisma.

CREATE TYPE "person_kind" AS ENUM ('provider', 'client');
CREATE TYPE "row_outcome" AS ENUM ('pending', 'created', 'linked', 'updated', 'unchanged', 'skipped', 'rejected', 'failed', 'needsReview', 'deleted');

CREATE TABLE "key_uses" (
    "setting" TEXT NOT NULL,
    "id" TEXT NOT NULL,
    "check_hash" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "key_uses_pkey" PRIMARY KEY ("setting", "id")
);

CREATE TABLE "people" (
    "id" UUID NOT NULL,
    "kind" "person_kind" NOT NULL,
    "external_id" TEXT NOT NULL,
    "wanted" BOOLEAN NOT NULL DEFAULT true,
    "profile" BYTEA,
    "profile_hash" BYTEA,
    "email_fingerprint" BYTEA,
    "wanted_at" TIMESTAMPTZ(6) NOT NULL DEFAULT clock_timestamp(),
    "wanted_version" INTEGER NOT NULL DEFAULT 1,
    "held_at" TIMESTAMPTZ(3),
    "stated_at" TIMESTAMPTZ(6) NOT NULL DEFAULT clock_timestamp(),
    "platform_user_id" TEXT,
    "invite_url" BYTEA,
    "origin" TEXT,
    "applied_profile" BYTEA,
    "applied_providers" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "providers_known" BOOLEAN NOT NULL DEFAULT false,
    "checked_absent_at" TIMESTAMPTZ(3),
    "call_id" UUID,
    "call_operation" TEXT,
    "call_version" INTEGER,
    "call_look_up_at" TIMESTAMPTZ(3),
    "unsettled_call" UUID,
    "unsettled_operation" TEXT,
    "unsettled_profile" BYTEA,
    "unsettled_email" BYTEA,
    "unsettled_look_up_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "review" TEXT,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "refused_operation" TEXT,
    "refused_code" INTEGER,
    "refused_at" TIMESTAMPTZ(3),
    "state" TEXT NOT NULL DEFAULT 'pending' CHECK ("state" IN ('pending', 'waiting', 'synced', 'failed', 'needs-review', 'deleting', 'deleted')),
    "step" TEXT,
    "error_code" TEXT,
    "error_text" BYTEA,
    "urgent" BOOLEAN NOT NULL DEFAULT false,
    "due_at" TIMESTAMPTZ(3),
    "import_id" UUID,
    "new_by_import" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "people_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "people_platform_user_id_key" ON "people"("platform_user_id");
CREATE INDEX "people_kind_state_external_id_idx" ON "people"("kind", "state", "external_id");
CREATE INDEX "people_email_fingerprint_idx" ON "people"("email_fingerprint");
-- Imports look for people that exist under another id.
CREATE INDEX "people_profile_hash_idx" ON "people"("profile_hash") WHERE "wanted";
-- The feeder reads each import and each step separately, so that those that may not be called now cost nothing.
CREATE INDEX "people_import_id_step_due_at_idx" ON "people"("import_id", "step", "due_at") WHERE "import_id" IS NOT NULL AND "due_at" IS NOT NULL;
CREATE INDEX "people_step_due_at_idx" ON "people"("step", "due_at") WHERE "import_id" IS NULL AND NOT "urgent" AND "due_at" IS NOT NULL;
CREATE INDEX "people_urgent_idx" ON "people"("step", "due_at") WHERE "urgent" AND "due_at" IS NOT NULL;
CREATE INDEX "people_applied_providers_idx" ON "people" USING GIN ("applied_providers");
CREATE UNIQUE INDEX "people_kind_external_id_key" ON "people"("kind", "external_id");
-- Whom the cancel of an import may withdraw.
CREATE INDEX "people_new_by_import_idx" ON "people"("new_by_import", "kind", "id") WHERE "new_by_import" IS NOT NULL;
-- Deletions of people whom the EHR has never named.
CREATE INDEX "people_stated_at_idx" ON "people"("stated_at") WHERE "wanted_version" = 0;
-- Retention and erasure leave out what belongs to these few.
CREATE INDEX "people_held_at_idx" ON "people"("held_at") WHERE "held_at" IS NOT NULL;

CREATE TABLE "former_ids" (
    "kind" "person_kind" NOT NULL,
    "external_id" TEXT NOT NULL,
    "person_id" UUID NOT NULL,
    "merged" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "former_ids_pkey" PRIMARY KEY ("kind","external_id")
);
CREATE INDEX "former_ids_person_id_idx" ON "former_ids"("person_id");

CREATE TABLE "client_providers" (
    "client_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "provider_id" UUID NOT NULL,
    CONSTRAINT "client_providers_pkey" PRIMARY KEY ("client_id","position")
);
CREATE INDEX "client_providers_provider_id_client_id_idx" ON "client_providers"("provider_id", "client_id");
CREATE UNIQUE INDEX "client_providers_client_id_provider_id_key" ON "client_providers"("client_id", "provider_id");

CREATE TABLE "dependent_requeues" (
    "id" BIGSERIAL NOT NULL,
    "person_id" UUID NOT NULL,
    "of_clients" BOOLEAN NOT NULL,
    "after_client" UUID,
    CONSTRAINT "dependent_requeues_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "email_claims" (
    "fingerprint" BYTEA NOT NULL,
    "person_id" UUID NOT NULL,
    CONSTRAINT "email_claims_pkey" PRIMARY KEY ("fingerprint")
);
CREATE INDEX "email_claims_person_id_idx" ON "email_claims"("person_id");

CREATE TABLE "platform_calls" (
    "id" BIGSERIAL NOT NULL,
    "person_id" UUID,
    "operation" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "status" INTEGER,
    "outcome" TEXT NOT NULL,
    "duration_ms" INTEGER NOT NULL,
    "reason" TEXT,
    CONSTRAINT "platform_calls_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "platform_calls_at_idx" ON "platform_calls"("at");
CREATE INDEX "platform_calls_person_id_id_idx" ON "platform_calls"("person_id", "id");

CREATE TABLE "platform_pauses" (
    "key" TEXT NOT NULL,
    "limited_until" TIMESTAMPTZ(3),
    "limited_times" INTEGER NOT NULL DEFAULT 0,
    "paused_until" TIMESTAMPTZ(3),
    "reason" TEXT,
    "status" INTEGER,
    "failing_since" TIMESTAMPTZ(3),
    "failures" INTEGER NOT NULL DEFAULT 0,
    "failing" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "succeeded_at" TIMESTAMPTZ(3),
    "succeeded_url" TEXT,
    "succeeded_base" TEXT,
    "refusals" INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT "platform_pauses_pkey" PRIMARY KEY ("key")
);

CREATE TABLE "imports" (
    "id" UUID NOT NULL,
    "kind" TEXT,
    "mode" TEXT NOT NULL,
    "dry_run" BOOLEAN NOT NULL,
    "default_provider" TEXT,
    "id_systems" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "correction_of" UUID,
    "state" TEXT NOT NULL,
    "opened_at" TIMESTAMPTZ(6) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "applied_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),
    "failures" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3),
    "withdraws" BOOLEAN NOT NULL DEFAULT false,
    "files" BYTEA NOT NULL,
    "mentioned" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "lost_providers" INTEGER NOT NULL DEFAULT 0,
    "guards" JSONB,
    "totals" JSONB,
    "error_code" TEXT,
    "error_detail" TEXT,
    CONSTRAINT "imports_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "imports_state_idx" ON "imports"("state");

CREATE TABLE "import_rows" (
    "import_id" UUID NOT NULL,
    "row_no" INTEGER NOT NULL,
    "file" INTEGER NOT NULL,
    "line" INTEGER NOT NULL,
    "kind" "person_kind",
    "external_id" TEXT,
    "says" TEXT NOT NULL,
    "profile" BYTEA,
    "cells" BYTEA,
    "profile_hash" BYTEA,
    "email_fingerprint" BYTEA,
    "providers" TEXT[],
    "adds_providers" BOOLEAN NOT NULL DEFAULT false,
    "platform_user_id" TEXT,
    "version_at" TIMESTAMPTZ(3),
    "version_no" BIGINT,
    "version_place" INTEGER,
    "corrected" BOOLEAN NOT NULL DEFAULT false,
    "planned" TEXT,
    "phase" SMALLINT,
    "applied_at" TIMESTAMPTZ(3),
    "person_id" UUID,
    "person_version" INTEGER,
    "replaced" JSONB,
    "calls_min" INTEGER NOT NULL DEFAULT 0,
    "calls_max" INTEGER NOT NULL DEFAULT 0,
    "outcome" "row_outcome" NOT NULL DEFAULT 'pending',
    "code" TEXT,
    "field" TEXT,
    "hint" TEXT,
    "settled_at" TIMESTAMPTZ(3),
    CONSTRAINT "import_rows_pkey" PRIMARY KEY ("import_id","row_no")
);
-- Rows that were not applied, in the order in which they will be.
CREATE INDEX "import_rows_unapplied_idx" ON "import_rows"("import_id", "phase", "row_no") WHERE "phase" IS NOT NULL;
-- Rows whose people are not finished.
CREATE INDEX "import_rows_applied_idx" ON "import_rows"("import_id", "row_no") WHERE "outcome" = 'pending' AND "applied_at" IS NOT NULL;
-- Deletions that a cancel may take back.
CREATE INDEX "import_rows_replaced_idx" ON "import_rows"("import_id", "row_no") WHERE "replaced" IS NOT NULL;
-- The newest outcomes of people.
CREATE INDEX "import_rows_settled_idx" ON "import_rows"("import_id", "settled_at", "row_no") WHERE "settled_at" IS NOT NULL;
-- Rows that a plan compares: few of a file that was imported before.
CREATE INDEX "import_rows_pending_idx" ON "import_rows"("import_id", "row_no") WHERE "outcome" = 'pending';
CREATE INDEX "import_rows_rejected_idx" ON "import_rows"("import_id", "row_no") WHERE "outcome" = 'rejected';
-- From a person to the rows that contain personal data of it, or were not applied. Unchanged rows do neither.
CREATE INDEX "import_rows_external_id_idx" ON "import_rows"("external_id") WHERE "profile" IS NOT NULL OR "cells" IS NOT NULL;
-- Whom an import states to be deleted.
CREATE INDEX "import_rows_deletion_idx" ON "import_rows"("import_id", "external_id") WHERE "says" = 'deleted';
CREATE INDEX "import_rows_email_fingerprint_idx" ON "import_rows"("email_fingerprint") WHERE "email_fingerprint" IS NOT NULL;

CREATE TABLE "import_records" (
    "import_id" UUID NOT NULL,
    "block_no" INTEGER NOT NULL,
    "file" INTEGER NOT NULL,
    "sealed" BYTEA NOT NULL,
    CONSTRAINT "import_records_pkey" PRIMARY KEY ("import_id","block_no")
);

CREATE TABLE "api_keys" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "prefix" TEXT NOT NULL,
    "hash" BYTEA NOT NULL,
    "scopes" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "revoked_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    "rotated_to" UUID,
    "mac" BYTEA,
    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "api_keys_hash_key" ON "api_keys"("hash");

CREATE TABLE "browser_sessions" (
    "id" UUID NOT NULL,
    "token_hash" BYTEA NOT NULL,
    "key_hash" BYTEA,
    "issuer" TEXT,
    "subject" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "scopes" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "authenticated_at" TIMESTAMPTZ(3),
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "ends_at" TIMESTAMPTZ(3) NOT NULL,
    "mac" BYTEA NOT NULL,
    CONSTRAINT "browser_sessions_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "browser_sessions_token_hash_key" ON "browser_sessions"("token_hash");
CREATE INDEX "browser_sessions_ends_at_idx" ON "browser_sessions"("ends_at");

CREATE TABLE "audit_entries" (
    "id" BIGSERIAL NOT NULL,
    "uid" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "key_id" TEXT NOT NULL,
    "key_name" TEXT NOT NULL,
    "issuer" TEXT,
    "action" TEXT NOT NULL,
    "outcome" TEXT NOT NULL,
    "on_behalf_of" TEXT,
    "purpose" TEXT,
    "request_id" TEXT,
    "source" TEXT,
    "filter" JSONB,
    "mac" BYTEA NOT NULL,
    CONSTRAINT "audit_entries_pkey" PRIMARY KEY ("id")
);
CREATE INDEX "audit_entries_at_idx" ON "audit_entries"("at");
CREATE INDEX "audit_entries_key_id_id_idx" ON "audit_entries"("key_id", "id");
CREATE INDEX "audit_entries_action_id_idx" ON "audit_entries"("action", "id");

-- Subjects have their own table, so that an index finds all entries about one of them.
CREATE TABLE "audit_subjects" (
    "entry" BIGINT NOT NULL,
    "kind" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    CONSTRAINT "audit_subjects_pkey" PRIMARY KEY ("kind", "subject", "entry"),
    CONSTRAINT "audit_subjects_entry_fkey" FOREIGN KEY ("entry") REFERENCES "audit_entries"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX "audit_subjects_entry_idx" ON "audit_subjects"("entry");

-- The collation is fixed, so that the service computes the same order as PostgreSQL.
CREATE TABLE "audit_ranges" (
    "entry" BIGINT NOT NULL,
    "kind" TEXT NOT NULL,
    "count" INTEGER NOT NULL,
    "first" TEXT COLLATE "C" NOT NULL,
    "last" TEXT COLLATE "C" NOT NULL,
    CONSTRAINT "audit_ranges_pkey" PRIMARY KEY ("entry", "kind"),
    CONSTRAINT "audit_ranges_entry_fkey" FOREIGN KEY ("entry") REFERENCES "audit_entries"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX "audit_ranges_kind_entry_idx" ON "audit_ranges"("kind", "entry");

CREATE TABLE "audit_unlinked" (
    "entry" BIGINT NOT NULL,
    "queued_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "audit_unlinked_pkey" PRIMARY KEY ("entry")
);

CREATE TABLE "audit_links" (
    "no" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "entries" BIGINT[],
    "macs" BYTEA[],
    "previous" BYTEA NOT NULL,
    "former" BYTEA[] DEFAULT ARRAY[]::BYTEA[],
    "mac" BYTEA NOT NULL,
    CONSTRAINT "audit_links_pkey" PRIMARY KEY ("no")
);
CREATE INDEX "audit_links_faulty_idx" ON "audit_links"("at") WHERE array_position("macs", NULL) IS NOT NULL;

CREATE TABLE "audit_cuts" (
    "up_to" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "linked_at" TIMESTAMPTZ(3) NOT NULL,
    "entries" INTEGER NOT NULL,
    "macs" BYTEA[],
    "mac" BYTEA NOT NULL,
    CONSTRAINT "audit_cuts_pkey" PRIMARY KEY ("up_to")
);

-- The audit log is append-only, also for its owner. Only prune_audit, which runs with the owner's rights, removes
-- entries, and only a rotation of AUDIT_KEYS by the owner renews MACs. The search path is fixed, because a temporary
-- table of the caller's could otherwise stand for pg_class.
CREATE FUNCTION "refuse_audit_change"() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (TG_OP = 'DELETE' AND current_setting('notebridge.audit_pruning', true) = 'on'
      OR TG_OP = 'UPDATE' AND TG_TABLE_NAME IN ('audit_links', 'audit_cuts')
        AND current_setting('notebridge.audit_rotation', true) = 'on')
    AND pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN RETURN NULL; END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER "audit_entries_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_entries"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();
CREATE TRIGGER "audit_subjects_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_subjects"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();
CREATE TRIGGER "audit_ranges_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_ranges"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();
CREATE TRIGGER "audit_links_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_links"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();
CREATE TRIGGER "audit_cuts_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_cuts"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();

-- Removes the links up to a number with their entries, and nothing younger than a year. The service may add links, so what
-- a link says of its age and its entries proves nothing: a young link stops the cut, and young entries stay. Null if another
-- process removed the links first.
CREATE FUNCTION "prune_audit"(before timestamptz, last_link bigint) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  removed int;
BEGIN
  IF before > clock_timestamp() - interval '365 days' THEN
    RAISE EXCEPTION 'the audit log is kept for a year at least';
  END IF;
  IF EXISTS (SELECT FROM audit_links l WHERE l.no <= last_link AND l.at >= before) THEN
    RAISE EXCEPTION 'a link up to % is too young', last_link;
  END IF;
  PERFORM set_config('notebridge.audit_pruning', 'on', true);
  DELETE FROM audit_entries e USING (SELECT unnest(l.entries) AS entry FROM audit_links l WHERE l.no <= last_link) AS cut
  WHERE e.id = cut.entry AND e.at < before;
  GET DIAGNOSTICS removed = ROW_COUNT;
  DELETE FROM audit_links l WHERE l.no <= last_link;
  IF NOT FOUND THEN removed := NULL; END IF;
  PERFORM set_config('notebridge.audit_pruning', 'off', true);
  RETURN removed;
END
$$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION prune_audit SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE EXECUTE ON FUNCTION "prune_audit" FROM PUBLIC;

-- Only the owner of the tables writes the history of migrations. It does not exist where schemas are compared.
CREATE FUNCTION "refuse_history_change"() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'MEMBER') THEN RETURN NULL; END IF;
  RAISE EXCEPTION 'only the owner changes %', TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;
DO $$ BEGIN
  IF to_regclass('_prisma_migrations') IS NOT NULL THEN
    CREATE TRIGGER "history_of_owner" BEFORE INSERT OR UPDATE OR DELETE ON "_prisma_migrations"
      FOR EACH STATEMENT EXECUTE FUNCTION "refuse_history_change"();
  END IF;
END $$;

CREATE TABLE "idempotency_records" (
    "id" UUID NOT NULL,
    "scope_hash" BYTEA NOT NULL,
    "request_hash" BYTEA NOT NULL,
    "status" INTEGER,
    "headers" JSONB,
    "body" BYTEA,
    "lease_token" UUID NOT NULL,
    "lease_until" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "idempotency_records_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "idempotency_records_scope_hash_key" ON "idempotency_records"("scope_hash");
CREATE INDEX "idempotency_records_expires_at_idx" ON "idempotency_records"("expires_at");

CREATE TABLE "sessions" (
    "id" UUID NOT NULL,
    "session_id" TEXT,
    "alias_of" UUID,
    "state" TEXT NOT NULL,
    "provider_user_id" TEXT,
    "client_user_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "ever_client_user_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "note_template_ids" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "partner_appointment_id" TEXT,
    "facts" BYTEA,
    "notes_revision" INTEGER NOT NULL DEFAULT 0,
    "request" BYTEA,
    "correlation_id" TEXT,
    "input_kind" TEXT,
    "requested_at" TIMESTAMPTZ(3),
    "attempted_at" TIMESTAMPTZ(3),
    "settled_at" TIMESTAMPTZ(3),
    "abandoned" BOOLEAN NOT NULL DEFAULT false,
    "event_state" TEXT,
    "event_appointment_id" TEXT,
    "ai_notes_enabled" BOOLEAN,
    "ai_notes_rank" SMALLINT NOT NULL DEFAULT 0,
    "last_event_at" TIMESTAMPTZ(3),
    "published_end" TEXT,
    "published_code" TEXT,
    "publish_end_by" TIMESTAMPTZ(3),
    "changes" INTEGER NOT NULL DEFAULT 0,
    "fetched_changes" INTEGER NOT NULL DEFAULT 0,
    "call_no" INTEGER NOT NULL DEFAULT 0,
    "notes_events" INTEGER NOT NULL DEFAULT 0,
    "processing_notes" INTEGER NOT NULL DEFAULT 0,
    "notes_found" INTEGER NOT NULL DEFAULT 0,
    "rechecks" SMALLINT NOT NULL DEFAULT 0,
    "fetched_at" TIMESTAMPTZ(3),
    "state_from" TEXT,
    "incomplete" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "not_found_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "refused_at" TIMESTAMPTZ(3),
    "refused_status" INTEGER,
    "retry_at" TIMESTAMPTZ(3),
    "update_until" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3),
    "urgent" BOOLEAN NOT NULL DEFAULT true,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "sessions_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "sessions_session_id_key" ON "sessions"("session_id");
CREATE INDEX "sessions_alias_of_idx" ON "sessions"("alias_of") WHERE "alias_of" IS NOT NULL;
CREATE INDEX "sessions_updated_at_id_idx" ON "sessions"("updated_at", "id") WHERE "state" <> 'Merged';
CREATE INDEX "sessions_provider_user_id_updated_at_id_idx" ON "sessions"("provider_user_id", "updated_at", "id");
CREATE INDEX "sessions_state_updated_at_id_idx" ON "sessions"("state", "updated_at", "id");
-- Without fastupdate, because every lookup of a client would also scan the pending list.
CREATE INDEX "sessions_ever_client_user_ids_idx" ON "sessions" USING GIN ("ever_client_user_ids") WITH (fastupdate = off);
CREATE INDEX "sessions_partner_appointment_id_idx" ON "sessions"("partner_appointment_id");
CREATE INDEX "sessions_event_appointment_id_idx" ON "sessions"("event_appointment_id") WHERE "requested_at" IS NULL AND "event_appointment_id" IS NOT NULL;
-- Partial indexes of the few rows that are due, counted, published or watched.
CREATE INDEX "sessions_due_idx" ON "sessions"("urgent", "due_at") WHERE "due_at" IS NOT NULL AND "session_id" IS NOT NULL;
CREATE INDEX "sessions_to_send_idx" ON "sessions"("due_at") WHERE "state" = 'Requested';
CREATE INDEX "sessions_publish_end_by_idx" ON "sessions"("publish_end_by") WHERE "publish_end_by" IS NOT NULL;
CREATE INDEX "sessions_incomplete_idx" ON "sessions"("fetched_at") WHERE "incomplete" <> '{}';
-- Sessions that have documents, as FHIR searches read them.
CREATE INDEX "sessions_with_notes_idx" ON "sessions"("updated_at", "id") WHERE "notes_revision" > 0;
CREATE INDEX "sessions_correlation_id_provider_user_id_idx" ON "sessions"("correlation_id", "provider_user_id") WHERE "correlation_id" IS NOT NULL;
CREATE INDEX "sessions_open_idx" ON "sessions"("state", "requested_at") WHERE "state" IN ('Requested', 'Unknown');
-- At most one open request per appointment and provider, so an event that names both belongs to only one request.
CREATE UNIQUE INDEX "sessions_open_key" ON "sessions"("correlation_id", "provider_user_id") WHERE "state" IN ('Requested', 'Unknown');
-- Sessions with changes that no fetch has answered yet.
CREATE INDEX "sessions_backlog_idx" ON "sessions"("last_event_at") WHERE "due_at" IS NOT NULL AND "changes" > "fetched_changes";
-- Those whose newest event no fetch has answered.
CREATE INDEX "sessions_awaited_idx" ON "sessions"("last_event_at") WHERE "due_at" IS NOT NULL AND "changes" > "fetched_changes" AND ("fetched_at" IS NULL OR "last_event_at" > "fetched_at");

CREATE TABLE "session_documents" (
    "id" UUID NOT NULL,
    "session" UUID NOT NULL,
    "note_template_id" TEXT NOT NULL,
    "ordinal" INTEGER NOT NULL DEFAULT 0,
    "session_document_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "revision" INTEGER NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "incomplete" BOOLEAN NOT NULL DEFAULT false,
    "superseded_at" TIMESTAMPTZ(3),
    CONSTRAINT "session_documents_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "session_documents_session_note_template_id_ordinal_key" ON "session_documents"("session", "note_template_id", "ordinal");

CREATE TABLE "document_revisions" (
    "document" UUID NOT NULL,
    "revision" INTEGER NOT NULL,
    "session_document_id" TEXT NOT NULL,
    "notes" BYTEA,
    "fetched_at" TIMESTAMPTZ(3) NOT NULL,
    "event_at" TIMESTAMPTZ(3),
    "removed_at" TIMESTAMPTZ(3),
    CONSTRAINT "document_revisions_pkey" PRIMARY KEY ("document","revision")
);
CREATE INDEX "document_revisions_fetched_at_idx" ON "document_revisions"("fetched_at") WHERE "notes" IS NOT NULL;

CREATE TABLE "session_insights" (
    "session" UUID NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "transcript" BYTEA,
    "topics" BYTEA,
    "named_entities" BYTEA,
    "analytics" BYTEA,
    "fetched_at" TIMESTAMPTZ(3) NOT NULL,
    "removed_at" TIMESTAMPTZ(3),
    CONSTRAINT "session_insights_pkey" PRIMARY KEY ("session")
);
CREATE INDEX "session_insights_fetched_at_idx" ON "session_insights"("fetched_at") WHERE "removed_at" IS NULL;

CREATE TABLE "processing_sessions" (
    "processing_id" TEXT NOT NULL,
    "session" UUID,
    "answer" BYTEA,
    "changes" INTEGER NOT NULL DEFAULT 0,
    "fetched_changes" INTEGER NOT NULL DEFAULT 0,
    "notes_events" INTEGER NOT NULL DEFAULT 0,
    "last_event_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "refused_at" TIMESTAMPTZ(3),
    "refused_status" INTEGER,
    "not_found_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3),
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "processing_sessions_pkey" PRIMARY KEY ("processing_id")
);
CREATE INDEX "processing_sessions_due_idx" ON "processing_sessions"("due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "processing_sessions_session_idx" ON "processing_sessions"("session") WHERE "session" IS NOT NULL;

CREATE TABLE "compliance_jobs" (
    "id" UUID NOT NULL,
    "job_id" TEXT,
    "alias_of" UUID,
    "state" TEXT NOT NULL,
    "files" BYTEA,
    "message" BYTEA,
    "call_no" INTEGER NOT NULL DEFAULT 0,
    "attempted_at" TIMESTAMPTZ(3),
    "result" BYTEA,
    "last_event_at" TIMESTAMPTZ(3),
    "published_at" TIMESTAMPTZ(3),
    "review" TEXT,
    "removed_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "failures" INTEGER NOT NULL DEFAULT 0,
    "refused_at" TIMESTAMPTZ(3),
    "refused_status" INTEGER,
    "not_found_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3),
    "give_up_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "compliance_jobs_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "compliance_jobs_job_id_key" ON "compliance_jobs"("job_id");
CREATE INDEX "compliance_jobs_due_at_idx" ON "compliance_jobs"("due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "compliance_jobs_give_up_at_idx" ON "compliance_jobs"("give_up_at") WHERE "give_up_at" IS NOT NULL;
CREATE INDEX "compliance_jobs_alias_of_idx" ON "compliance_jobs"("alias_of") WHERE "alias_of" IS NOT NULL;
CREATE INDEX "compliance_jobs_updated_at_idx" ON "compliance_jobs"("updated_at") WHERE "removed_at" IS NULL;
CREATE INDEX "compliance_jobs_created_at_id_idx" ON "compliance_jobs"("created_at", "id") WHERE "alias_of" IS NULL;
CREATE INDEX "compliance_jobs_state_created_at_id_idx" ON "compliance_jobs"("state", "created_at", "id");
CREATE INDEX "compliance_jobs_review_created_at_id_idx" ON "compliance_jobs"("review", "created_at", "id") WHERE "review" IS NOT NULL;

CREATE TABLE "webhook_deliveries" (
    "id" BIGSERIAL NOT NULL,
    "signature" BYTEA NOT NULL,
    "body" BYTEA NOT NULL,
    "sent_at" BIGINT NOT NULL,
    "secret_index" SMALLINT NOT NULL,
    "event_type" TEXT,
    "subject" TEXT NOT NULL,
    "state" TEXT NOT NULL DEFAULT 'received',
    "reason" TEXT,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "starts" INTEGER NOT NULL DEFAULT 0,
    "repeats" INTEGER NOT NULL DEFAULT 0,
    "handled" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3) DEFAULT clock_timestamp(),
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "processed_at" TIMESTAMPTZ(3),
    CONSTRAINT "webhook_deliveries_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "webhook_deliveries_signature_key" ON "webhook_deliveries"("signature");
-- Finished rows cost the index nothing.
CREATE INDEX "webhook_deliveries_due_at_idx" ON "webhook_deliveries"("due_at") WHERE "due_at" IS NOT NULL;
CREATE INDEX "webhook_deliveries_pending_idx" ON "webhook_deliveries"("subject", "sent_at", "id") WHERE "due_at" IS NOT NULL;
CREATE INDEX "webhook_deliveries_about_idx" ON "webhook_deliveries"("subject", "received_at", "id");
-- The receiver does not pay for it. Open deliveries are found by the index of due dates.
CREATE INDEX "webhook_deliveries_state_id_idx" ON "webhook_deliveries"("state", "id") WHERE "state" IN ('ignored', 'not-understood', 'dead');

-- At most one row.
CREATE TABLE "webhook_receiver" (
    "id" SMALLINT NOT NULL DEFAULT 1 CHECK ("id" = 1),
    "genuine_at" TIMESTAMPTZ(3),
    "refusals" JSONB NOT NULL DEFAULT '{}',
    CONSTRAINT "webhook_receiver_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "platform_users" (
    "platform_user_id" TEXT NOT NULL,
    "role" TEXT,
    "external_user_id" TEXT,
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "person_id" UUID,
    "origin" TEXT,
    "deleted" BOOLEAN NOT NULL DEFAULT false,
    CONSTRAINT "platform_users_pkey" PRIMARY KEY ("platform_user_id")
);
CREATE INDEX "platform_users_person_id_idx" ON "platform_users"("person_id");
CREATE INDEX "platform_users_external_user_id_idx" ON "platform_users"("external_user_id") WHERE "external_user_id" IS NOT NULL;

CREATE TABLE "feed_events" (
    "id" BIGSERIAL NOT NULL,
    "cursor" BIGINT,
    "type" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "subject" TEXT NOT NULL,
    "data" JSONB NOT NULL,
    CONSTRAINT "feed_events_pkey" PRIMARY KEY ("id")
);
CREATE UNIQUE INDEX "feed_events_cursor_key" ON "feed_events"("cursor");
-- The events about one subject.
CREATE INDEX "feed_events_subject_cursor_idx" ON "feed_events"("subject", "cursor") WHERE "cursor" IS NOT NULL;
-- The next cursors go to the oldest events without one.
CREATE INDEX "feed_events_without_cursor_idx" ON "feed_events"("id") WHERE "cursor" IS NULL;

CREATE TABLE "feed_state" (
    "id" SMALLINT NOT NULL DEFAULT 1 CHECK ("id" = 1),
    "epoch" BIGINT NOT NULL DEFAULT 1,
    "pruned_to" BIGINT NOT NULL DEFAULT 0,
    CONSTRAINT "feed_state_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "subscriptions" (
    "id" UUID NOT NULL,
    "url" TEXT NOT NULL,
    "types" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[],
    "description" TEXT,
    "secret" BYTEA NOT NULL,
    "former_secret" BYTEA,
    "former_until" TIMESTAMPTZ(3),
    "headers" BYTEA,
    "header_names" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[],
    "epoch" BIGINT NOT NULL,
    "position" BIGINT NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 0,
    "paused" TEXT,
    "paused_at" TIMESTAMPTZ(3),
    "failures" INTEGER NOT NULL DEFAULT 0,
    "failing_since" TIMESTAMPTZ(3),
    "attempts" BIGINT NOT NULL DEFAULT 0,
    "delivered_at" TIMESTAMPTZ(3),
    "due_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "subscriptions_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "processes" (
    "id" UUID NOT NULL,
    "roles" TEXT[],
    "store" TEXT NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "seen_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "processes_pkey" PRIMARY KEY ("id")
);

-- A ring: the attempt with the number n has the slot n % 50.
CREATE TABLE "subscription_attempts" (
    "subscription_id" UUID NOT NULL,
    "slot" SMALLINT NOT NULL,
    "number" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "cursor" TEXT,
    "type" TEXT,
    "status" INTEGER,
    "fault" TEXT,
    "duration_ms" INTEGER NOT NULL,
    CONSTRAINT "subscription_attempts_pkey" PRIMARY KEY ("subscription_id", "slot"),
    CONSTRAINT "subscription_attempts_subscription_id_fkey" FOREIGN KEY ("subscription_id") REFERENCES "subscriptions"("id") ON DELETE CASCADE ON UPDATE CASCADE
);

-- At most one row.
CREATE TABLE "sending_hold" (
    "id" INTEGER NOT NULL DEFAULT 1 CHECK ("id" = 1),
    "since" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "held_by" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    CONSTRAINT "sending_hold_pkey" PRIMARY KEY ("id")
);

CREATE TABLE "unreadable_answers" (
    "operation" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "unreadable_answers_pkey" PRIMARY KEY ("operation")
);

CREATE TABLE "handed_out_urls" (
    "fingerprint" BYTEA NOT NULL,
    "handed_out_at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT "handed_out_urls_pkey" PRIMARY KEY ("fingerprint")
);
CREATE INDEX "handed_out_urls_handed_out_at_idx" ON "handed_out_urls"("handed_out_at");

CREATE TABLE "workers" (
    "id" UUID NOT NULL,
    "roles" TEXT[],
    "alive_until" TIMESTAMPTZ(3) NOT NULL,
    CONSTRAINT "workers_pkey" PRIMARY KEY ("id")
);

ALTER TABLE "former_ids" ADD CONSTRAINT "former_ids_person_id_fkey" FOREIGN KEY ("person_id") REFERENCES "people"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "client_providers" ADD CONSTRAINT "client_providers_client_id_fkey" FOREIGN KEY ("client_id") REFERENCES "people"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "client_providers" ADD CONSTRAINT "client_providers_provider_id_fkey" FOREIGN KEY ("provider_id") REFERENCES "people"("id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "email_claims" ADD CONSTRAINT "email_claims_person_id_fkey" FOREIGN KEY ("person_id") REFERENCES "people"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "import_records" ADD CONSTRAINT "import_records_import_id_fkey" FOREIGN KEY ("import_id") REFERENCES "imports"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "session_documents" ADD CONSTRAINT "session_documents_session_fkey" FOREIGN KEY ("session") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "document_revisions" ADD CONSTRAINT "document_revisions_document_fkey" FOREIGN KEY ("document") REFERENCES "session_documents"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "session_insights" ADD CONSTRAINT "session_insights_session_fkey" FOREIGN KEY ("session") REFERENCES "sessions"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "processing_sessions" ADD CONSTRAINT "processing_sessions_session_fkey" FOREIGN KEY ("session") REFERENCES "sessions"("id") ON DELETE SET NULL ON UPDATE CASCADE;
ALTER TABLE "platform_users" ADD CONSTRAINT "platform_users_person_id_fkey" FOREIGN KEY ("person_id") REFERENCES "people"("id") ON DELETE SET NULL ON UPDATE CASCADE;
