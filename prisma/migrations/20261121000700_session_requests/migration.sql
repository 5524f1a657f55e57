-- CreateTable
CREATE TABLE "session_requests" (
    "session" UUID NOT NULL,
    "state" TEXT NOT NULL,
    "provider_user_id" TEXT NOT NULL,
    "correlation_id" TEXT NOT NULL,
    "input_kind" TEXT NOT NULL,
    "body" BYTEA,
    "heard" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "attempted_at" TIMESTAMPTZ(3),
    "fault" TEXT,
    "strikes" INTEGER NOT NULL DEFAULT 0,
    "due_at" TIMESTAMPTZ(3),
    "lease_token" UUID,
    "lease_until" TIMESTAMPTZ(3),
    "requested_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "settled_at" TIMESTAMPTZ(3),

    CONSTRAINT "session_requests_pkey" PRIMARY KEY ("session")
);

-- CreateTable
CREATE TABLE "session_aliases" (
    "id" UUID NOT NULL,
    "session" UUID NOT NULL,

    CONSTRAINT "session_aliases_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "session_requests_due_at_idx" ON "session_requests"("due_at");

-- CreateIndex
CREATE INDEX "session_requests_lease_until_idx" ON "session_requests"("lease_until");

-- CreateIndex
CREATE INDEX "session_aliases_session_idx" ON "session_aliases"("session");

-- One open request at most for an appointment and a provider: so whatever is heard of it can only be one request's.
CREATE UNIQUE INDEX "session_requests_open_key" ON "session_requests"("correlation_id", "provider_user_id") WHERE "state" IN ('Requested', 'Unknown');
