-- CreateTable
CREATE TABLE "heartbeats" (
    "role" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "heartbeats_pkey" PRIMARY KEY ("role")
);
