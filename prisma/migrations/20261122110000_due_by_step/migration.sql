-- DropIndex
DROP INDEX "people_lane_due_at_idx";

-- CreateIndex: those whom an import holds back, and those who are not due, stand in nobody's way
CREATE INDEX "people_lane_step_due_at_idx" ON "people"("lane", "step", "due_at") WHERE "due_at" IS NOT NULL AND "held_by" IS NULL;

-- CreateIndex: a probe goes to who was refused longest ago
CREATE INDEX "people_step_refused_at_idx" ON "people"("step", "refused_at") WHERE "refused_at" IS NOT NULL;

-- DropIndex
DROP INDEX "client_providers_provider_id_idx";

-- CreateIndex
CREATE INDEX "client_providers_provider_id_client_id_idx" ON "client_providers"("provider_id", "client_id");

-- CreateTable
CREATE TABLE "client_wakes" (
    "provider_id" UUID NOT NULL,
    "after_client" UUID,
    "since" TIMESTAMPTZ(6) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "client_wakes_pkey" PRIMARY KEY ("provider_id")
);

-- CreateIndex
CREATE INDEX "client_wakes_since_idx" ON "client_wakes"("since");

-- Clients who waited when this was installed are looked at once more.
INSERT INTO "client_wakes" ("provider_id")
SELECT DISTINCT cp."provider_id" FROM "people" c JOIN "client_providers" cp ON cp."client_id" = c."id"
WHERE c."state" = 'waiting';
