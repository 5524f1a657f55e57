import { setImmediate as turn } from 'node:timers/promises';
import { buildSimulator, type Simulator } from '../../simulator/app.js';
import { type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { Settings } from '../../simulator/settings.js';
import type { User } from '../../simulator/users/user-directory.js';
import type { WorldClock } from './time.js';

export type Rule = Partial<FaultRule>;

/** Milliseconds that no test lasts. */
export const FOREVER_MS = 365 * 86_400_000;

/** The platform's double as a test of a world sees it. */
export class Platform {
  private constructor(readonly simulator: Simulator) {}

  /** @param clock by which it does what it does later */
  static async start(clock: WorldClock, settings: Partial<Settings>): Promise<Platform> {
    const simulator = await buildSimulator({
      seed: 11,
      nowMs: () => clock.now().getTime(),
      after: (ms, work) => clock.after(ms, work),
      // The machine's time alone ends the post of a webhook.
      settings: { callsPerWindow: 6_000, stepMs: 0, webhookTimeoutMs: 60_000, ...settings },
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

  /** The next call that fits is done at once, and answered when `release` says so. */
  hold(rule: Rule): void {
    this.injectFault({ kind: 'slow', ms: FOREVER_MS, ...rule });
  }

  /** Removes every injected fault and answers every held call. */
  release(): void {
    this.simulator.state.faults.clear();
    this.simulator.state.timers.cancelAll();
  }

  /** Changes how it behaves. */
  set(settings: Partial<Settings>): void {
    const { state } = this.simulator;
    state.settings = { ...state.settings, ...settings };
  }

  /** The users with this external id. */
  usersOf(externalId: string): User[] {
    return this.simulator.state.users.list().filter(({ partnerUserId }) => partnerUserId === externalId);
  }

  /** The calls that arrived, of one operation or of all. */
  arrivals(operation?: string): number {
    return this.simulator.state.arrivals
      .list()
      .filter((arrival) => operation === undefined || arrival.operation === operation).length;
  }

  /** Whether a call that arrived has no answer yet. */
  get isAsked(): boolean {
    return this.simulator.state.arrivals.list().some(({ status }) => status === null);
  }

  /** How often it told something. */
  get told(): number {
    return this.simulator.state.deliveries.list().reduce((sum, { attempts }) => sum + attempts.length, 0);
  }

  /** Waits until what it is telling just now is received. */
  async hasTold(): Promise<void> {
    while (this.simulator.state.deliveries.areUnderWay) await turn();
  }

  close(): Promise<void> {
    return this.simulator.close();
  }
}
