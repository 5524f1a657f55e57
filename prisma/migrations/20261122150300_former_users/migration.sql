-- AlterTable
ALTER TABLE "platform_users" ADD COLUMN     "person_id" UUID;

-- CreateIndex
CREATE INDEX "platform_users_person_id_idx" ON "platform_users"("person_id");
