-- CreateSchema
CREATE SCHEMA IF NOT EXISTS "public";

-- CreateEnum
CREATE TYPE "person_kind" AS ENUM ('provider', 'client');

-- CreateEnum
CREATE TYPE "person_state" AS ENUM ('pending', 'waiting', 'synced', 'failed', 'needs-review', 'deleting', 'deleted');

-- CreateEnum
CREATE TYPE "lane" AS ENUM ('interactive', 'bulk');

-- CreateTable
CREATE TABLE "vault_keys" (
    "purpose" TEXT NOT NULL,
    "wrapped" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "vault_keys_pkey" PRIMARY KEY ("purpose")
);

-- CreateTable
CREATE TABLE "people" (
    "id" UUID NOT NULL,
    "kind" "person_kind" NOT NULL,
    "external_id" TEXT NOT NULL,
    "wanted" BOOLEAN NOT NULL DEFAULT true,
    "profile" BYTEA NOT NULL,
    "profile_hash" BYTEA NOT NULL,
    "email_fingerprint" BYTEA,
    "wanted_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "platform_user_id" TEXT,
    "invite_url" BYTEA,
    "origin" TEXT,
    "applied_profile" BYTEA,
    "applied_hash" BYTEA,
    "applied_providers" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "providers_known" BOOLEAN NOT NULL DEFAULT false,
    "checked_absent_at" TIMESTAMPTZ(3),
    "attempt_call_id" BIGINT,
    "attempt_profile" BYTEA,
    "attempt_email" BYTEA,
    "attempt_look_up_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "review" TEXT,
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "retry_at" TIMESTAMPTZ(3),
    "refused_at" TIMESTAMPTZ(3),
    "state" "person_state" NOT NULL DEFAULT 'pending',
    "step" TEXT,
    "error_code" TEXT,
    "error_text" BYTEA,
    "lane" "lane" NOT NULL DEFAULT 'interactive',
    "due_at" TIMESTAMPTZ(3),
    "lease_token" UUID,
    "lease_until" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "people_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "client_providers" (
    "client_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "provider_id" UUID NOT NULL,

    CONSTRAINT "client_providers_pkey" PRIMARY KEY ("client_id","position")
);

-- CreateTable
CREATE TABLE "email_claims" (
    "fingerprint" BYTEA NOT NULL,
    "person_id" UUID NOT NULL,

    CONSTRAINT "email_claims_pkey" PRIMARY KEY ("fingerprint")
);

-- CreateTable
CREATE TABLE "platform_calls" (
    "id" BIGSERIAL NOT NULL,
    "account" TEXT NOT NULL,
    "person_id" UUID,
    "operation" TEXT NOT NULL,
    "lane" "lane" NOT NULL,
    "granted_at" TIMESTAMPTZ(6) NOT NULL,
    "occupies_until" TIMESTAMPTZ(6) NOT NULL,
    "answered_at" TIMESTAMPTZ(6),
    "status" INTEGER,
    "outcome" TEXT,
    "duration_ms" INTEGER,
    "worker" TEXT NOT NULL,

    CONSTRAINT "platform_calls_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "call_budgets" (
    "account" TEXT NOT NULL,
    "blocked_until" TIMESTAMPTZ(6),
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "bulk_next_at" TIMESTAMPTZ(6),

    CONSTRAINT "call_budgets_pkey" PRIMARY KEY ("account")
);

-- CreateTable
CREATE TABLE "circuits" (
    "operation" TEXT NOT NULL,
    "opened_at" TIMESTAMPTZ(3),
    "probe_at" TIMESTAMPTZ(3),
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "opened_by" UUID,
    "closed_at" TIMESTAMPTZ(3),

    CONSTRAINT "circuits_pkey" PRIMARY KEY ("operation")
);

-- CreateIndex
CREATE UNIQUE INDEX "people_platform_user_id_key" ON "people"("platform_user_id");

-- CreateIndex
CREATE INDEX "people_kind_state_external_id_idx" ON "people"("kind", "state", "external_id");

-- CreateIndex
CREATE INDEX "people_email_fingerprint_idx" ON "people"("email_fingerprint");

-- CreateIndex
CREATE INDEX "people_lane_due_at_idx" ON "people"("lane", "due_at");

-- CreateIndex
CREATE INDEX "people_applied_providers_idx" ON "people" USING GIN ("applied_providers");

-- CreateIndex
CREATE UNIQUE INDEX "people_kind_external_id_key" ON "people"("kind", "external_id");

-- CreateIndex
CREATE INDEX "client_providers_provider_id_idx" ON "client_providers"("provider_id");

-- CreateIndex
CREATE UNIQUE INDEX "client_providers_client_id_provider_id_key" ON "client_providers"("client_id", "provider_id");

-- CreateIndex
CREATE INDEX "email_claims_person_id_idx" ON "email_claims"("person_id");

-- CreateIndex
CREATE INDEX "platform_calls_account_occupies_until_idx" ON "platform_calls"("account", "occupies_until");

-- CreateIndex
CREATE INDEX "platform_calls_person_id_id_idx" ON "platform_calls"("person_id", "id");
