import { Logger } from '@nestjs/common';
import { Queue } from 'bullmq';
import { canary, Searcher } from '../harness/canaries.js';
import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import type { NewApiKeyResponse } from '../src/access/keys/api-keys.dto.js';
import { producerOptions, workerOptions } from '../src/queue/backend/backend.js';
import { BoundedWorker } from '../src/queue/backend/bounded.js';
import { ADMIN_KEY } from './support/app.js';
import { queueBackend } from './support/backends.js';
import { type Mirror, useMirrors } from './support/service.js';
import { answerTo } from './support/webhook-requests.js';

interface BoardQueue {
  name: string;
  counts: Record<string, number>;
  jobs: { id: string; data: object }[];
}

const PERSON = { email: 'imani.okafor@example.org', firstName: 'Imani', lastName: 'Okafor' };

describe('the board of queues', () => {
  const backend = queueBackend('PostgreSQL');
  const newMirror = useMirrors();
  let mirror: Mirror;
  let service: Service;
  let operationsKey: string;

  beforeAll(async () => {
    Logger.overrideLogger(false);
    mirror = await newMirror({ backend });
    // Without a worker, jobs keep waiting.
    service = await mirror.start({ ROLES: 'api' });
    const body = { name: 'on-call', scopes: ['operations'] };
    operationsKey = (await service.call<NewApiKeyResponse>('POST', '/v1/api-keys', { body })).body.key;
    await service.call('PUT', '/v1/providers/p-1', { body: PERSON });
    await until('a job waits', async () => ((await queue('user-management')).counts.waiting ?? 0) > 0);
    await failOne();
  });

  /** Has a job of `compliance` fail with an error that quotes a person. */
  async function failOne() {
    const env = { ...mirror.settings, REDIS_URL: backend.redisUrl, QUEUE_PREFIX: backend.queuePrefix };
    const failing = new Queue('compliance', producerOptions(env));
    const fails = () => Promise.reject(Object.assign(new Error(canary('Person')), { code: '23505' }));
    const worker = new BoundedWorker('compliance', fails, workerOptions(env));
    await failing.waitUntilReady();
    await failing.add('notify', { reason: 'test' });
    await until('a job has failed', async () => (await failing.getFailedCount()) === 1);
    await Promise.all([worker.close(), failing.close()]);
  }

  const ask = (place: string, key: string | undefined = ADMIN_KEY, method = 'GET') =>
    answerTo(service.url + place, { method, headers: { authorization: `Bearer ${key}` } });

  const read = async (query = '') =>
    ((await (await ask(`/queues/api/queues${query}`)).json()) as { queues: BoardQueue[] }).queues;

  const queue = async (name: string, query = '') => {
    const found = (await read(query)).find((each) => each.name === name);
    if (!found) throw new Error(`The board has no queue ${name}.`);
    return found;
  };

  const script = async () => /static\/[\w./-]+\.js/.exec(await (await ask('/queues')).text())?.[0];

  it('needs the scope admin at each address', async () => {
    for (const place of ['/queues', '/queues/queue/imports', '/queues/api/queues', `/queues/${await script()}`]) {
      expect([place, (await ask(place)).status]).toEqual([place, 200]);
      expect([place, (await fetch(service.url + place)).status]).toEqual([place, 401]);
      expect([place, (await ask(place, operationsKey)).status]).toEqual([place, 403]);
    }
  });

  it('is read-only, leads to the sign-in, and loads nothing from another host', async () => {
    for (const change of ['queues/pause', 'queues/user-management/retry/failed', 'queues/user-management/empty'])
      expect([change, (await ask(`/queues/api/${change}`, ADMIN_KEY, 'PUT')).status]).toEqual([change, 405]);
    const opened = await fetch(`${service.url}/queues`, { headers: { accept: 'text/html' }, redirect: 'manual' });
    expect([opened.status, opened.headers.get('location')]).toEqual([303, '/console/queues']);
    const answer = await ask('/queues');
    expect(answer.headers.get('content-security-policy')).not.toMatch(/unsafe|sha256/);
    expect(await answer.text()).not.toMatch(/https?:|<style|style=/);
  });

  it('shows the reason of a job, and no personal data', async () => {
    const [job] = (await queue('user-management', '?activeQueue=user-management&status=waiting')).jobs;
    expect(job?.data).toEqual({ reason: expect.any(String) });
    const details = await (await ask(`/queues/api/queues/user-management/${job?.id}`)).text();
    for (const word of Object.values(PERSON)) expect(details).not.toContain(word);
  });

  it('shows only a code of a failed job, not its error', async () => {
    const [job] = (await queue('compliance', '?activeQueue=compliance&status=failed')).jobs;
    const details = await (await ask(`/queues/api/queues/compliance/${job?.id}`)).text();
    expect(details).toContain('"failedReason":"database-23505","stacktrace":[]');
    expect(new Searcher().finds(JSON.stringify(job) + details)).toEqual([]);
  });
});

describe('the board, while the store of the queues is unavailable', () => {
  const newMirror = useMirrors();

  it('answers 503', async () => {
    // No process listens on port 9 (discard).
    const service = await (await newMirror()).start({ ROLES: 'api', REDIS_URL: 'redis://127.0.0.1:9' });
    const { status, body } = await service.call<{ type: string }>('GET', '/queues/api/queues');
    expect([status, body.type]).toEqual([503, 'urn:notebridge:problem:queues-unavailable']);
  });
});
