-- CreateTable
CREATE TABLE "failed_attempts" (
    "kind" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "failures" INTEGER NOT NULL,
    "ends_at" TIMESTAMPTZ(3) NOT NULL,
    "untold" INTEGER NOT NULL DEFAULT 0,
    "untold_since" TIMESTAMPTZ(3),

    CONSTRAINT "failed_attempts_pkey" PRIMARY KEY ("kind","name")
);
