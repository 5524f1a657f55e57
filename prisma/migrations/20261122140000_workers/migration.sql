-- DropTable
DROP TABLE "heartbeats";

-- CreateTable
CREATE TABLE "workers" (
    "id" UUID NOT NULL,
    "alive_until" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "workers_pkey" PRIMARY KEY ("id")
);
