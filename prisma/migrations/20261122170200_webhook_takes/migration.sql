-- CreateTable
-- Unlogged: a commit of marks need not wait for the disk, and marks that a crash of the server takes are not missed.
CREATE UNLOGGED TABLE "webhook_takes" (
    "delivery_id" BIGINT NOT NULL,
    "take" UUID NOT NULL,
    "alone" BOOLEAN NOT NULL,

    CONSTRAINT "webhook_takes_pkey" PRIMARY KEY ("delivery_id","take")
);
