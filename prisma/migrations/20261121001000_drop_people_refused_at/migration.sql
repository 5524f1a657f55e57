-- AlterTable
ALTER TABLE "people" DROP COLUMN "refused_at";
