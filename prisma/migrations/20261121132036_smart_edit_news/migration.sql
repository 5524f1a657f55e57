-- Ends that nobody told the EHR of yet.
INSERT INTO "feed_events" ("type", "at", "subject", "data")
SELECT CASE "state" WHEN 'Completed' THEN 'smart-edit.completed' ELSE 'smart-edit.failed' END, clock_timestamp(),
  'smart-edit/jobs/' || "job_id", jsonb_build_object('jobId', "job_id")
FROM "smart_edit_jobs" WHERE "news_at" IS NOT NULL ORDER BY "news_at";

-- DropIndex
DROP INDEX "smart_edit_jobs_news_at_idx";

-- AlterTable
ALTER TABLE "smart_edit_jobs" DROP COLUMN "news_at";
