-- DropIndex
DROP INDEX "platform_calls_granted_at_idx";
