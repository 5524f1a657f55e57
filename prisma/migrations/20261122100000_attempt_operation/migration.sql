-- AlterTable
ALTER TABLE "people" ADD COLUMN "attempt_operation" TEXT;

-- A client's deletion that was certainly not done stands in for the list that was open before it.
UPDATE "people" p SET "attempt_operation" = CASE
    WHEN c."operation" = 'deleteUser' AND c."outcome" IS NOT NULL AND c."outcome" <> 'unknown-outcome' THEN 'setClientProviders'
    ELSE c."operation" END
  FROM "platform_calls" c WHERE c."id" = p."attempt_call_id";
