/** Counts of one run. */
export interface Counts {
  /** Processes of the service that were killed with SIGKILL. */
  kills: number;
  /** Faults of PostgreSQL, Redis, the network, the platform, secrets and keys. */
  faults: number;
  /** Starts of processes, the first ones included. */
  starts: number;
  /** Webhooks that were sent, without retries. */
  deliveries: number;
  /** Calls that arrived at the platform. */
  calls: number;
  /** Answers of the platform to a create that were lost. */
  lostAnswers: number;
  /** Requests of the EHR, without retries. */
  requests: number;
}

export const emptyCounts = (): Counts => ({
  kills: 0,
  faults: 0,
  starts: 0,
  deliveries: 0,
  calls: 0,
  lostAnswers: 0,
  requests: 0,
});
