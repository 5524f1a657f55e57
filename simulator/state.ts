import type { ComplianceJob } from './compliance/compliance-job.js';
import { Arrivals } from './gate/arrivals.js';
import { Faults } from './gate/faults.js';
import { SlidingLimit } from './gate/sliding-limit.js';
import { RecorderAccess } from './recorder/recorder-access.js';
import { SeededRandom } from './seeded-random.js';
import { SessionStore } from './sessions/session-store.js';
import type { Settings } from './settings.js';
import { type After, type NowMs, Timers } from './timers.js';
import { UploadStore } from './uploads/upload-store.js';
import { UserDirectory } from './users/user-directory.js';
import { Deliveries } from './webhooks/deliveries.js';

/** Everything that the simulated platform knows. It is in memory, so a restart loses it. */
export class SimulatorState {
  readonly timers: Timers;
  /** The number of calls whose answer waits for a timer. */
  heldCalls = 0;
  /** The platform's URL without a trailing slash; known once it listens. */
  publicUrl = '';
  settings: Settings;
  random: SeededRandom;
  arrivals!: Arrivals;
  limit!: SlidingLimit;
  faults!: Faults;
  users!: UserDirectory;
  deliveries!: Deliveries;
  sessions!: SessionStore;
  uploads!: UploadStore;
  complianceJobs!: Map<string, ComplianceJob>;
  recorderAccess!: RecorderAccess;

  constructor(
    private readonly initial: Settings,
    seed: number,
    readonly nowMs: NowMs,
    private readonly after?: After,
  ) {
    this.timers = new Timers(after);
    this.settings = initial;
    this.random = new SeededRandom(seed, () => this.settings.idCase);
    this.empty();
  }

  /** Deletes everything, restores the initial settings and restarts the random numbers. */
  reset(seed: number = this.random.seed): void {
    this.close();
    this.settings = this.initial;
    this.random = new SeededRandom(seed, () => this.settings.idCase);
    this.empty();
  }

  /** Cancels everything that is pending. */
  close(): void {
    this.timers.cancelAll();
    this.deliveries.close();
  }

  private empty(): void {
    this.arrivals = new Arrivals();
    this.limit = new SlidingLimit();
    this.faults = new Faults(this.random);
    this.users = new UserDirectory(this.random);
    this.deliveries = new Deliveries(() => this.settings, this.random, this.nowMs, new Timers(this.after));
    this.sessions = new SessionStore(this.random);
    this.uploads = new UploadStore(
      this.random,
      this.nowMs,
      () => this.publicUrl,
      () => this.settings.uploadUrlSeconds,
      () => this.settings.fileUrls,
    );
    this.complianceJobs = new Map();
    this.recorderAccess = new RecorderAccess(this.nowMs, () => this.settings.otpSeconds);
  }
}
