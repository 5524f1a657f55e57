-- AlterTable
ALTER TABLE "imports" ADD COLUMN     "guards" JSONB;
