-- AlterTable
ALTER TABLE "people" ADD COLUMN     "user_link" BYTEA;

-- AlterTable
ALTER TABLE "platform_users" ADD COLUMN     "person_link" BYTEA;
