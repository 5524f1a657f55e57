-- AlterTable
ALTER TABLE "people" ADD COLUMN "given_primary" TEXT,
ADD COLUMN "role_known" BOOLEAN NOT NULL DEFAULT true;

UPDATE "people" SET "role_known" = false WHERE "origin" = 'linked';
