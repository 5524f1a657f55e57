-- CreateEnum
CREATE TYPE "row_outcome" AS ENUM ('pending', 'created', 'linked', 'updated', 'unchanged', 'skipped', 'rejected', 'failed', 'needsReview', 'deleted');

-- AlterTable
ALTER TABLE "people" ADD COLUMN     "held_by" UUID;

-- CreateTable
CREATE TABLE "imports" (
    "id" UUID NOT NULL,
    "ordinal" BIGSERIAL NOT NULL,
    "kind" TEXT NOT NULL,
    "mode" TEXT NOT NULL,
    "dry_run" BOOLEAN NOT NULL,
    "default_provider" TEXT,
    "id_systems" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "state" TEXT NOT NULL,
    "staged_at" TIMESTAMPTZ(3),
    "alive_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "apply_wanted" BOOLEAN NOT NULL DEFAULT false,
    "overrides" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "columns" JSONB,
    "error_code" TEXT,
    "error_detail" TEXT,
    "created_by" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "applied_at" TIMESTAMPTZ(3),
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "imports_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "import_rows" (
    "import_id" UUID NOT NULL,
    "row_no" INTEGER NOT NULL,
    "file" TEXT NOT NULL,
    "line" INTEGER NOT NULL,
    "kind" "person_kind",
    "external_id" TEXT,
    "profile" BYTEA,
    "profile_hash" BYTEA,
    "email_fingerprint" BYTEA,
    "providers" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "raw" BYTEA,
    "planned" TEXT,
    "person_id" UUID,
    "person_wanted_at" TIMESTAMPTZ(3),
    "calls_min" INTEGER NOT NULL DEFAULT 0,
    "calls_max" INTEGER NOT NULL DEFAULT 0,
    "outcome" "row_outcome" NOT NULL DEFAULT 'pending',
    "code" TEXT,
    "field" TEXT,
    "hint" TEXT,

    CONSTRAINT "import_rows_pkey" PRIMARY KEY ("import_id","row_no")
);

-- CreateTable
CREATE TABLE "import_facts" (
    "import_id" UUID NOT NULL,
    "fact_no" INTEGER NOT NULL,
    "type" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "target" TEXT NOT NULL,
    "kind" TEXT,
    "rank" INTEGER,
    "at" TIMESTAMPTZ(3),
    "position" INTEGER,

    CONSTRAINT "import_facts_pkey" PRIMARY KEY ("import_id","fact_no")
);

-- CreateIndex
CREATE UNIQUE INDEX "imports_ordinal_key" ON "imports"("ordinal");

-- CreateIndex
CREATE INDEX "imports_state_idx" ON "imports"("state");

