-- DropIndex
DROP INDEX "webhook_deliveries_state_id_idx";

-- CreateIndex
-- Partial: the receiver does not pay for it. Open deliveries are found by the index of due dates.
CREATE INDEX "webhook_deliveries_state_id_idx" ON "webhook_deliveries"("state", "id") WHERE "state" IN ('ignored', 'not-understood', 'dead');

-- What was not understood stood among what is none of our business, where nobody looked.
UPDATE "webhook_deliveries" SET "state" = 'not-understood' WHERE "state" = 'ignored' AND "reason" <> 'not-ours';
