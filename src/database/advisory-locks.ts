/** The keys of the advisory locks: any fixed numbers, here in one place, because two equal ones would wait for each other. */
export const LOCKS = {
  migrations: 727_001,
  /** Shared by every upload of an import, from its beginning to its end. */
  openUploads: 727_003,
  /** With the hash of the platform's id of a job. */
  complianceJob: 727_004,
  retention: 727_012,
  roundOfPeople: 727_031,
  subscriptions: 727_042,
  browserSessions: 727_043,
  feedNumbers: 727_044,
} as const;
