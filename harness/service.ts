import { setTimeout as delay } from 'node:timers/promises';
import type { ImportResponse } from '../src/imports/api/import-view.js';
import type { PersonResponse } from '../src/people/api/person-view.js';
import type { Program } from './program.js';
import { until } from './until.js';

/** The service's answer; `body` is its JSON. */
export interface Answer<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Seconds of `Prefer: wait`. */
  readonly wait?: number;
  /** Defaults to the administrator's key. */
  readonly key?: string;
  readonly idempotencyKey?: string;
}

/** A file to import. */
export interface ImportFile {
  readonly name: string;
  readonly type: string;
  readonly content: string | Buffer;
}

/** One process of the service. */
export interface Service extends Program {
  readonly url: string;
  call<Body = PersonResponse>(method: string, path: string, options?: CallOptions): Promise<Answer<Body>>;
  /** Uploads files as one import. @param query without its question mark */
  startImport(query: string, files: ImportFile[]): Promise<ImportResponse>;
  /** Resolves when an import has ended. */
  importEnded(id: string): Promise<ImportResponse>;
}

/** The line that a process prints when it is ready; the group is its URL. */
export const READY = /"address":"([^"]+)"|"ready":true/;

/** Pause before the retry of a request that the database was too busy for. */
const RETRY_MS = 500;

const isDatabaseBusy = (status: number, text: string) =>
  status === 503 && /problem:(database|audit)-unavailable/.test(text);

/**
 * @param adminKey value of ADMIN_API_KEY
 * @param url where requests go, such as a load balancer. Defaults to the process's own address
 */
export function serviceOf(
  program: Program,
  adminKey: string,
  url: string = READY.exec(program.output())?.[1] ?? '',
): Service {
  const service: Service = {
    ...program,
    url,
    async call<Body>(method: string, path: string, options: CallOptions = {}) {
      const { body, wait, key = adminKey, idempotencyKey } = options;
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(wait !== undefined && { prefer: `wait=${wait}` }),
          ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      }).catch((error: Error) => {
        throw new Error(`${method} ${path}: ${error.cause ?? error.message}\n${program.output().slice(-4_000)}`);
      });
      const text = await response.text();
      // A 500 is never expected; the log says why.
      if (response.status === 500) throw new Error(`${method} ${path}: ${text}\n${program.output().slice(-4_000)}`);
      if (isDatabaseBusy(response.status, text)) {
        await delay(RETRY_MS);
        return service.call<Body>(method, path, options);
      }
      const parsed = text === '' ? undefined : JSON.parse(text);
      return { status: response.status, headers: response.headers, body: parsed as Body };
    },
    async startImport(query, files) {
      const form = new FormData();
      for (const { name, type, content } of files) {
        const part = /^(providers|clients)\b/.exec(name)?.[0] ?? 'file';
        form.append(part, new Blob([new Uint8Array(Buffer.from(content))], { type }), name);
      }
      const response = await fetch(`${url}/v1/imports?${query}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${adminKey}` },
        body: form,
      });
      const text = await response.text();
      if (isDatabaseBusy(response.status, text)) {
        await delay(RETRY_MS);
        return service.startImport(query, files);
      }
      if (response.status !== 202) throw new Error(`POST /v1/imports returned ${response.status}: ${text}`);
      return JSON.parse(text) as ImportResponse;
    },
    async importEnded(id) {
      return until('the import has ended', async () => {
        const { body } = await service.call<ImportResponse>('GET', `/v1/imports/${id}`, { wait: 1 });
        return body.finishedAt ? body : undefined;
      });
    },
  };
  return service;
}

/** The sum of an import's outcomes; `deleted` is not part of it. */
export function sumOfOutcomes({ counts }: Pick<ImportResponse, 'counts'>): number {
  const { total: _, deleted: __, ...outcomes } = counts;
  return Object.values(outcomes).reduce((sum, rows) => sum + rows, 0);
}
