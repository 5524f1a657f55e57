-- Subjects get a table of their own, so that what was done to one of them is found by an index.
ALTER TABLE "audit_entries"
    ADD COLUMN "on_behalf_of" TEXT,
    ADD COLUMN "purpose" TEXT,
    ADD COLUMN "request_id" TEXT,
    ADD COLUMN "source" TEXT,
    ADD COLUMN "counts" JSONB;
CREATE INDEX "audit_entries_at_idx" ON "audit_entries"("at");
CREATE INDEX "audit_entries_key_id_id_idx" ON "audit_entries"("key_id", "id");
CREATE INDEX "audit_entries_action_id_idx" ON "audit_entries"("action", "id");

CREATE TABLE "audit_subjects" (
    "entry" BIGINT NOT NULL,
    "kind" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    CONSTRAINT "audit_subjects_pkey" PRIMARY KEY ("kind", "subject", "entry"),
    CONSTRAINT "audit_subjects_entry_fkey" FOREIGN KEY ("entry") REFERENCES "audit_entries"("id") ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX "audit_subjects_entry_idx" ON "audit_subjects"("entry");

CREATE TABLE "audit_unsealed" (
    "entry" BIGINT NOT NULL,
    CONSTRAINT "audit_unsealed_pkey" PRIMARY KEY ("entry")
);

CREATE TABLE "audit_seals" (
    "no" BIGINT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT clock_timestamp(),
    "entries" BIGINT[],
    "macs" BYTEA NOT NULL,
    "mac" BYTEA NOT NULL,
    CONSTRAINT "audit_seals_pkey" PRIMARY KEY ("no")
);

-- Of the entries so far: a path's external id is of the kind that the path says.
INSERT INTO "audit_subjects" ("entry", "kind", "subject")
SELECT DISTINCT e."id",
    CASE
        WHEN named.key = 'externalId' AND e."action" LIKE '%/v1/clients/%' THEN 'client'
        WHEN named.key = 'externalId' AND e."action" LIKE '%/v1/providers/%' THEN 'provider'
        WHEN named.key = 'id' AND e."action" LIKE '%/v1/sessions%' THEN 'session'
        WHEN named.key = 'id' AND e."action" LIKE '%import%' THEN 'import'
        WHEN named.key = 'id' AND e."action" LIKE '%/v1/compliance%' THEN 'compliance-job'
        WHEN named.key = 'id' AND e."action" LIKE '%/v1/webhook-deliveries%' THEN 'delivery'
        WHEN named.key = 'apiKey' OR named.key = 'id' AND e."action" LIKE '%/v1/api-keys%' THEN 'api-key'
        ELSE named.key
    END, named.value
FROM "audit_entries" e, jsonb_each_text(e."subjects") AS named WHERE named.value IS NOT NULL;
INSERT INTO "audit_unsealed" ("entry") SELECT "id" FROM "audit_entries";
ALTER TABLE "audit_entries" DROP COLUMN "subjects";

CREATE OR REPLACE FUNCTION "refuse_audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END
$$;
CREATE TRIGGER "audit_subjects_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_subjects"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();
CREATE TRIGGER "audit_seals_append_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_seals"
  FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();
