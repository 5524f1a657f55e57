import { randomBytes } from 'node:crypto';
import { buildSimulator, DEFAULT_API_KEY, type Simulator } from '../../simulator/app.js';
import { type FaultRule, readFaultRule } from '../../simulator/gate/fault-rule.js';
import type { Settings } from '../../simulator/settings.js';
import type { User } from '../../simulator/users/user-directory.js';
import type { ImportView } from '../../src/imports/import-view.js';
import type { PersonView } from '../../src/people/person-view.js';
import type { QueueBackend } from './backends.js';
import { freshDatabase, type TestDatabase } from './databases.js';
import { type Program, usePrograms } from './processes.js';
import { until } from './until.js';

export const ADMIN_KEY = 'admin-key-of-the-tests';
export const WEBHOOK_SECRET = 'webhook-secret-of-the-tests';

/** What the service answered; `body` is its JSON. */
export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Seconds that the call may wait (Prefer: wait). */
  readonly wait?: number;
  readonly key?: string;
}

/** A file of an import. */
export interface ImportFile {
  readonly name: string;
  readonly type: string;
  readonly content: string | Buffer;
}

/** One process of the service. */
export interface Service extends Program {
  readonly url: string;
  call<Body = PersonView>(method: string, path: string, options?: CallOptions): Promise<Answer<Body>>;
  /** Uploads files as one import; the query without its question mark. */
  startImport(query: string, files: ImportFile[]): Promise<ImportView>;
  /** Waits until an import has ended. */
  importEnded(id: string, deadlineMs?: number): Promise<ImportView>;
}

/** A platform, a database, and the services that share them. */
export interface Mirror {
  readonly simulator: Simulator;
  readonly database: TestDatabase;
  /** Orders trouble of one kind, for the next call that fits unless `count` says otherwise. */
  trouble(rule: Partial<FaultRule> & Pick<FaultRule, 'kind'>): void;
  /** The platform's users with this external id. */
  usersOf(externalId: string): User[];
  /** The calls that arrived at the platform, of one operation or of all. */
  arrivals(operation?: string): number;
  /** Starts one more process. @param env beside the usual settings; undefined takes one away */
  start(env?: Record<string, string | undefined>): Promise<Service>;
}

export interface MirrorOptions {
  readonly backend?: QueueBackend;
  /** Of a server that the suite keeps itself; otherwise one of its own on the shared server. */
  readonly database?: TestDatabase;
  /** Calls in a window, as both sides count them; 6,000 a minute unless told. */
  readonly calls?: number;
  readonly windowSeconds?: number;
  readonly platform?: Partial<Settings>;
  readonly env?: Record<string, string | undefined>;
}

/** Milliseconds that a start may take; while a suite kills processes on a busy machine it takes long. */
const START_MS = 90_000;

const READY = /"address":"([^"]+)"|"ready":true/;

/** To be called once in a suite: the returned function makes a platform, an empty database and whoever mirrors. */
export function useMirrors(): (options?: MirrorOptions) => Promise<Mirror> {
  const startProgram = usePrograms();
  const closing: (() => Promise<void>)[] = [];
  afterAll(async () => {
    for (const close of closing) await close();
  });
  return async ({ backend, calls = 6_000, windowSeconds = 60, platform = {}, env = {}, ...more } = {}) => {
    const simulator = await buildSimulator({ settings: { callsPerWindow: calls, windowSeconds, ...platform } });
    const database = more.database ?? (await freshDatabase());
    closing.push(simulator.close, database.drop);
    const settings = {
      PLATFORM_BASE_URL: simulator.url,
      PLATFORM_API_KEY: DEFAULT_API_KEY,
      PLATFORM_WEBHOOK_SECRET: WEBHOOK_SECRET,
      PLATFORM_CONTRACT: 'simulator/contract.json',
      PLATFORM_TIMEOUT_SECONDS: '2',
      ADMIN_API_KEY: ADMIN_KEY,
      PORT: '0',
      DATABASE_URL: database.url,
      DATA_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
      USER_MANAGEMENT_CALLS_PER_MINUTE: String(calls),
      USER_MANAGEMENT_WINDOW_SECONDS: String(windowSeconds),
      UNKNOWN_OUTCOME_GRACE_SECONDS: '1',
      ...(backend?.env ?? { QUEUE_PREFIX: `test-${randomBytes(6).toString('hex')}` }),
      ...env,
    };
    const start = async (more = {}) => {
      const program = await startProgram({
        file: 'dist/src/main.js',
        env: { ...settings, ...more },
        ready: READY,
        deadlineMs: START_MS,
      });
      return asService(program, READY.exec(program.output())?.[1] ?? '');
    };
    const { state } = simulator;
    return {
      simulator,
      database,
      start,
      trouble: (rule) => state.faults.order([readFaultRule({ count: 1, ...rule })]),
      usersOf: (externalId) => state.users.list().filter(({ partnerUserId }) => partnerUserId === externalId),
      arrivals: (wanted) =>
        state.arrivals.list().filter(({ operation }) => wanted === undefined || operation === wanted).length,
    };
  };
}

function asService(program: Program, url: string): Service {
  const service: Service = {
    ...program,
    url,
    async call<Body>(method: string, path: string, { body, wait, key = ADMIN_KEY }: CallOptions = {}) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(wait !== undefined && { prefer: `wait=${wait}` }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      const text = await response.text();
      // Never expected: the log says why.
      if (response.status === 500) throw new Error(`${method} ${path}: ${text}\n${program.output().slice(-4_000)}`);
      return { status: response.status, headers: response.headers, body: JSON.parse(text) as Body };
    },
    async startImport(query, files) {
      const form = new FormData();
      for (const { name, type, content } of files) {
        const part = /^(providers|clients)\b/.exec(name)?.[0] ?? 'file';
        form.append(part, new Blob([new Uint8Array(Buffer.from(content))], { type }), name);
      }
      const response = await fetch(`${url}/v1/imports?${query}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_KEY}` },
        body: form,
      });
      const text = await response.text();
      if (response.status !== 202) throw new Error(`the import was answered ${response.status}: ${text}`);
      return JSON.parse(text) as ImportView;
    },
    async importEnded(id, deadlineMs = 60_000) {
      return until(
        'the import has ended',
        async () => {
          const { body } = await service.call<ImportView>('GET', `/v1/imports/${id}`, { wait: 1 });
          return body.finishedAt ? body : undefined; // also when it is a problem, such as 503
        },
        deadlineMs,
      );
    },
  };
  return service;
}

/** Adds up an import's outcomes; `deleted` stands outside the sum. */
export function sumOfOutcomes({ counts }: Pick<ImportView, 'counts'>): number {
  const { total: _, deleted: __, ...outcomes } = counts;
  return Object.values(outcomes).reduce((sum, rows) => sum + rows, 0);
}
