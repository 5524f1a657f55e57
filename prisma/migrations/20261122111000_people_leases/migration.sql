-- AlterTable: no call is under way while this is installed, so no lease is carried over
ALTER TABLE "people" DROP COLUMN "lease_token",
DROP COLUMN "lease_until",
ADD COLUMN     "lease_no" INTEGER NOT NULL DEFAULT 0,
ADD COLUMN     "lease_owner" UUID,
ADD COLUMN     "lease_safe_at" TIMESTAMPTZ(3);
