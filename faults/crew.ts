import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../harness/free-port.js';
import type { Service } from '../harness/service.js';
import type { SeededRandom } from '../simulator/seeded-random.js';
import type { Counts } from './counts.js';

type Roles = 'api' | 'worker' | 'api,worker';
type Settings = Record<string, string | undefined>;

/** Milliseconds until a process that ended is started again. */
const AGAIN_MS = 100;

/** One process at a fixed port, which is started again whenever it ends. */
interface Member {
  readonly roles: Roles;
  readonly port: number;
  settings: Settings;
  starts: number;
  /** Bytes that its processes before this one have logged. */
  loggedBefore: number;
  service?: Service;
  starting?: Promise<void>;
}

/** What a supervisor can tell of a member. */
export interface MemberState {
  readonly roles: Roles;
  readonly port: number;
  /** Undefined while none of its processes is ready. */
  readonly pid: number | undefined;
  readonly starts: number;
  /** Bytes that all its processes have logged. */
  readonly logged: number;
}

/** The processes of the service, watched by a supervisor such as an orchestrator. */
export class Crew {
  /** The last lines of processes that were ready and ended although nobody ended them. */
  readonly leftByThemselves: string[] = [];
  /** Likewise of those that were asked to stop and did not end with 0. */
  private readonly stoppedBadly: string[] = [];
  private readonly members: Member[] = [];
  private dismissed = false;

  constructor(
    private readonly start: (settings: Settings) => Promise<Service>,
    private readonly random: SeededRandom,
    private readonly counts: Counts,
  ) {}

  /** Adds processes of these roles and waits until all are ready. */
  async staff(...roles: Roles[]): Promise<void> {
    for (const each of roles) await this.add(each);
    await this.up();
  }

  /** Adds a process and does not wait for it. @param settings beside those that all have */
  async add(roles: Roles, settings: Settings = {}): Promise<void> {
    const member = { roles, port: await freePort(), settings, starts: 0, loggedBefore: 0 };
    this.members.push(member);
    void this.supervise(member);
  }

  /** Resolves when every process is ready. */
  async up(): Promise<void> {
    for (const member of this.members) await this.supervise(member);
  }

  /** Ports of all processes, ready or not. */
  get ports(): number[] {
    return this.members.map(({ port }) => port);
  }

  states(): MemberState[] {
    return this.members.map(({ roles, port, service, starts, loggedBefore }) => ({
      roles,
      port,
      pid: service?.pid,
      starts,
      logged: loggedBefore + (service?.printedBytes() ?? 0),
    }));
  }

  /** Ports of the processes that serve HTTP to the outside, ready or not. */
  get receivers(): number[] {
    return this.members.filter(({ roles }) => roles !== 'worker').map(({ port }) => port);
  }

  /** A process that serves the API, as soon as one is ready. */
  async api(): Promise<Service> {
    for (;;) {
      for (const { roles, service } of this.members) if (roles !== 'worker' && service) return service;
      await delay(AGAIN_MS);
    }
  }

  /**
   * Kills one of those that are ready with SIGKILL; of several one is left, as where they are on different hosts.
   *
   * @param spared ports of those that live on
   */
  async killOne(spared: readonly number[] = []): Promise<void> {
    const left = this.members.length > 1 ? 1 : 0;
    let ready: Member[] = [];
    while (ready.length === 0) {
      const all = this.members.filter(({ service }) => service);
      if (all.length > left) ready = all.filter(({ port }) => !spared.includes(port));
      await delay(AGAIN_MS);
    }
    const member = ready[this.random.below(ready.length)] as Member;
    const service = member.service as Service;
    member.service = undefined;
    await service.kill('SIGKILL');
    this.counts.kills += 1;
    void this.supervise(member);
  }

  /** Restarts one process after the other with other settings, as a rolling update does. */
  async roll(change: Settings): Promise<void> {
    for (const { port } of this.members) await this.restart(port, change);
  }

  /** Asks a process to stop, and starts another in its place. @param port of its */
  async restart(port: number, change: Settings = {}): Promise<void> {
    const member = this.members.find((each) => each.port === port);
    if (!member) throw new Error(`nobody is at port ${port}`);
    member.settings = { ...member.settings, ...change };
    await this.supervise(member);
    const { service } = member;
    member.service = undefined;
    const code = await service?.kill('SIGTERM');
    if (service && code !== 0) this.stoppedBadly.push(lastWords(service, code ?? null));
    await this.supervise(member);
  }

  /** Asks everybody to stop. @returns the last lines of whoever was asked to stop, now or before, and did not end with 0 */
  async stop(): Promise<string[]> {
    await this.up();
    this.dismissed = true;
    const services = this.members.flatMap(({ service }) => service ?? []);
    const codes = await Promise.all(services.map((service) => service.kill('SIGTERM')));
    const now = services.flatMap((service, place) =>
      codes[place] === 0 ? [] : lastWords(service, codes[place] ?? null),
    );
    return [...this.stoppedBadly, ...now];
  }

  /** Starts nobody again; who runs is killed by whoever started the crew. */
  dismiss(): void {
    this.dismissed = true;
  }

  private async supervise(member: Member): Promise<void> {
    while (!member.service && !this.dismissed) {
      member.starting ??= this.startOnce(member).finally(() => {
        member.starting = undefined;
      });
      await member.starting;
    }
  }

  private async startOnce(member: Member): Promise<void> {
    try {
      const service = await this.start({ ROLES: member.roles, PORT: String(member.port), ...member.settings });
      this.counts.starts += 1;
      member.starts += 1;
      member.service = service;
      void service.ended().then((code) => {
        this.ended(member, service, code);
        member.loggedBefore += service.printedBytes();
      });
    } catch {
      await delay(AGAIN_MS); // its database is away just now
    }
  }

  private ended(member: Member, service: Service, code: number | null): void {
    if (member.service !== service || this.dismissed) return;
    member.service = undefined;
    this.leftByThemselves.push(lastWords(service, code));
    void this.supervise(member);
  }
}

const lastWords = (service: Service, code: number | null): string =>
  `exit code ${code}: ${service.output().slice(-500)}`;
