-- AlterTable
ALTER TABLE "api_keys" ADD COLUMN "expires_at" TIMESTAMPTZ(3),
ADD COLUMN "last_used_at" TIMESTAMPTZ(3),
ADD COLUMN "rotated_to" UUID;
