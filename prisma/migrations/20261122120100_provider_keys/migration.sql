-- When what a FHIR resource says is over, and how it refers to a provider.
ALTER TABLE "import_facts" ADD COLUMN "ends" TIMESTAMPTZ(3), ADD COLUMN "form" TEXT;

-- From when on encounters name a client's providers; null: of the last 365 days.
ALTER TABLE "imports" ADD COLUMN "encounter_since" TIMESTAMPTZ(3);

-- Under which identifiers and roles of applied FHIR imports references mean a provider.
CREATE TABLE "provider_keys" (
    "key" TEXT NOT NULL,
    "external_id" TEXT NOT NULL,
    "ends" TIMESTAMPTZ(3),

    CONSTRAINT "provider_keys_pkey" PRIMARY KEY ("key","external_id")
);
