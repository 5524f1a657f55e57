-- CreateTable
CREATE TABLE "handed_out_urls" (
    "fingerprint" BYTEA NOT NULL,
    "handed_out_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "handed_out_urls_pkey" PRIMARY KEY ("fingerprint")
);

-- CreateIndex
CREATE INDEX "handed_out_urls_handed_out_at_idx" ON "handed_out_urls"("handed_out_at");
