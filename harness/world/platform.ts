import { setImmediate as nextTurn } from 'node:timers/promises';
import { buildSimulator, type Simulator } from '../../simulator/app.js';
import { type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { Settings } from '../../simulator/settings.js';
import type { User } from '../../simulator/users/user-directory.js';
import type { WorldClock } from './time.js';

export type Rule = Partial<FaultRule>;

/** Longer than any test lasts, in milliseconds. */
export const FOREVER_MS = 365 * 86_400_000;

/** How long the simulator waits for the answer to a webhook, in real milliseconds. Only a hang takes that long. */
const WEBHOOK_TIMEOUT_MS = 60_000;

/** The platform simulator of a world. */
export class Platform {
  private constructor(readonly simulator: Simulator) {}

  /** Starts a simulator whose timers follow `clock`. */
  static async start(clock: WorldClock, settings: Partial<Settings>): Promise<Platform> {
    const simulator = await buildSimulator({
      seed: 11,
      nowMs: () => clock.now().getTime(),
      after: (ms, work) => clock.after(ms, work),
      settings: { callsPerWindow: 6_000, stepMs: 0, webhookTimeoutMs: WEBHOOK_TIMEOUT_MS, ...settings },
    });
    return new Platform(simulator);
  }

  get url(): string {
    return this.simulator.url;
  }

  /** Injects a fault into the next matching call, or into the next `count` of them. */
  injectFault(rule: Rule & Pick<FaultRule, 'kind'>): void {
    this.simulator.state.faults.order([readFaultRule({ count: 1, ...rule })]);
  }

  /** Executes the next matching call immediately, but answers it only after `release`. */
  hold(rule: Rule): void {
    this.injectFault({ kind: 'slow', ms: FOREVER_MS, ...rule });
  }

  /** Removes every injected fault and answers every held call. */
  release(): void {
    this.simulator.state.faults.clear();
    this.simulator.state.timers.cancelAll();
  }

  /** Changes the simulator's settings. */
  set(settings: Partial<Settings>): void {
    const { state } = this.simulator;
    state.settings = { ...state.settings, ...settings };
  }

  /** The users with this external id. */
  usersOf(externalId: string): User[] {
    return this.simulator.state.users.list().filter(({ partnerUserId }) => partnerUserId === externalId);
  }

  /** The number of calls received, of one operation or of all. */
  arrivals(operation?: string): number {
    return this.simulator.state.arrivals
      .list()
      .filter((arrival) => operation === undefined || arrival.operation === operation).length;
  }

  /** True while calls are in flight and each waits for time to pass or for `release`. */
  get holdsAllCalls(): boolean {
    const { arrivals, heldCalls } = this.simulator.state;
    return heldCalls > 0 && heldCalls >= arrivals.list().filter(({ status }) => status === null).length;
  }

  /** The number of webhook attempts so far. */
  get webhookAttempts(): number {
    return this.simulator.state.deliveries.list().reduce((sum, { attempts }) => sum + attempts.length, 0);
  }

  /** Resolves when no webhook is in flight; those that wait for their time do not count. */
  async webhooksSent(): Promise<void> {
    // A delivery counts as in flight only some microtasks after it was sent.
    do await nextTurn();
    while (this.simulator.state.deliveries.areUnderWay);
  }

  close(): Promise<void> {
    return this.simulator.close();
  }
}
