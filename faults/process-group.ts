import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../harness/free-port.js';
import type { Service } from '../harness/service.js';
import type { SeededRandom } from '../simulator/seeded-random.js';
import type { Counts } from './counts.js';

type Roles = 'api' | 'worker' | 'api,worker';
type Settings = Record<string, string | undefined>;

/** Pause before a restart, and between two checks for a ready process. */
const RETRY_MS = 100;

/** One process at a fixed port, which is restarted whenever it ends. */
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

/** The state of a member, as a supervisor knows it. */
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
export class ProcessGroup {
  /** The last lines of ready processes that ended unexpectedly. */
  readonly unexpectedExits: string[] = [];
  /** The last lines of processes that were asked to stop and did not exit 0. */
  private readonly failedStops: string[] = [];
  private readonly members: Member[] = [];
  private isStopped = false;

  constructor(
    private readonly startOne: (settings: Settings) => Promise<Service>,
    private readonly random: SeededRandom,
    private readonly counts: Counts,
  ) {}

  /** Starts processes of these roles and waits until all are ready. */
  async start(...roles: Roles[]): Promise<void> {
    for (const each of roles) await this.add(each);
    await this.up();
  }

  /** Starts a process without waiting for it. @param settings in addition to the common ones */
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
      await delay(RETRY_MS);
    }
  }

  /**
   * Kills a ready process with SIGKILL. Leaves at least one of several, as if they ran on different hosts.
   *
   * @param spared ports of processes that must not be killed
   */
  async killOne(spared: readonly number[] = []): Promise<void> {
    const left = this.members.length > 1 ? 1 : 0;
    let ready: Member[] = [];
    while (ready.length === 0) {
      const all = this.members.filter(({ service }) => service);
      if (all.length > left) ready = all.filter(({ port }) => !spared.includes(port));
      await delay(RETRY_MS);
    }
    const member = ready[this.random.below(ready.length)] as Member;
    const service = member.service as Service;
    member.service = undefined;
    await service.kill('SIGKILL');
    this.counts.kills += 1;
    void this.supervise(member);
  }

  /** Restarts one process after the other with changed settings, as a rolling update does. */
  async roll(change: Settings): Promise<void> {
    for (const { port } of this.members) await this.restart(port, change);
  }

  /** Stops the process at this port with SIGTERM, and starts its replacement. */
  async restart(port: number, change: Settings = {}): Promise<void> {
    const member = this.members.find((each) => each.port === port);
    if (!member) throw new Error(`no process is at port ${port}`);
    member.settings = { ...member.settings, ...change };
    await this.supervise(member);
    const { service } = member;
    member.service = undefined;
    const code = await service?.kill('SIGTERM');
    if (service && code !== 0) this.failedStops.push(lastLines(service, code ?? null));
    await this.supervise(member);
  }

  /** Stops all processes with SIGTERM. @returns the last lines of each that did not exit 0, now or at a restart */
  async stop(): Promise<string[]> {
    await this.up();
    this.isStopped = true;
    const services = this.members.flatMap(({ service }) => service ?? []);
    const codes = await Promise.all(services.map((service) => service.kill('SIGTERM')));
    const now = services.flatMap((service, place) =>
      codes[place] === 0 ? [] : lastLines(service, codes[place] ?? null),
    );
    return [...this.failedStops, ...now];
  }

  /** Restarts no process from now on. The caller kills the running ones. */
  stopSupervising(): void {
    this.isStopped = true;
  }

  private async supervise(member: Member): Promise<void> {
    while (!member.service && !this.isStopped) {
      member.starting ??= this.tryToStart(member).finally(() => {
        member.starting = undefined;
      });
      await member.starting;
    }
  }

  private async tryToStart(member: Member): Promise<void> {
    try {
      const service = await this.startOne({ ROLES: member.roles, PORT: String(member.port), ...member.settings });
      this.counts.starts += 1;
      member.starts += 1;
      member.service = service;
      void service.ended().then((code) => {
        this.ended(member, service, code);
        member.loggedBefore += service.printedBytes();
      });
    } catch {
      await delay(RETRY_MS); // PostgreSQL is unavailable
    }
  }

  private ended(member: Member, service: Service, code: number | null): void {
    if (member.service !== service || this.isStopped) return;
    member.service = undefined;
    this.unexpectedExits.push(lastLines(service, code));
    void this.supervise(member);
  }
}

const lastLines = (service: Service, code: number | null): string =>
  `exit code ${code}: ${service.output().slice(-500)}`;
