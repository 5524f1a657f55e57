import { randomUUID } from 'node:crypto';
import type { WorldService } from '../../harness/world/world-service.js';
import { Problem } from '../../src/http/problem/problem.js';
import { SessionRequests } from '../../src/sessions/create/session-requests.service.js';
import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

describe('Idempotency-Key', () => {
  /** The creation ids of all runs. */
  let runs: string[];
  /** Resolves when the next run starts. */
  let started: Promise<void>;
  let noteStart: () => void;
  let run: () => Promise<void>;

  beforeEach(() => {
    runs = [];
    run = async () => {};
    started = new Promise((resolve) => {
      noteStart = resolve;
    });
    replaceRuns(world.get(SessionRequests));
  });

  function replaceRuns(requests: SessionRequests): void {
    jest.spyOn(requests, 'create').mockImplementation(async (id) => {
      runs.push(id);
      noteStart();
      await run();
      return { id, sessionId: null, run: runs.length, input: 'Jane Roe' } as never;
    });
  }

  async function startAnother(): Promise<WorldService> {
    const other = await world.startAnother();
    replaceRuns(other.app.get(SessionRequests, { strict: false }));
    return other;
  }

  const input = { text: { text: 'Jane Roe slept well.' } };
  const wish = { provider: 'p-1', noteTemplateIds: ['11111111-1111-4111-8111-111111111111'], input };
  const create = (idempotencyKey: string, more: object = {}, options: Parameters<typeof ask>[1] = {}) =>
    ask<{ id: string }>('POST /v1/sessions', {
      isChecked: false,
      ...options,
      body: { ...wish, ...more },
      headers: { 'idempotency-key': idempotencyKey },
    });

  /** Keeps every run from its end. @returns ends them */
  function hold(): () => void {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    run = () => held;
    return release;
  }

  it('returns the first answer to the same request, in any process and order of members', async () => {
    const key = randomUUID();
    const first = await create(key);
    const body = Object.fromEntries(Object.entries(wish).reverse());
    const again = await ask('POST /v1/sessions', {
      isChecked: false,
      on: await startAnother(),
      body,
      headers: { 'idempotency-key': key },
    });
    expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([202, first.text, 'true']);
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
    expect([runs, first.headers.get('idempotent-replayed')]).toEqual([[first.body.id], null]);
  });

  it('is stored as a fingerprint, like its request; the answer is encrypted', async () => {
    const key = `key-${randomUUID()}`;
    await create(key);
    const rows = await world.sql(`SELECT r::text, encode(body, 'escape') AS body FROM idempotency_records r`);
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toMatch(new RegExp(`jane|${key}`, 'i'));
  });

  it('is rejected with another body', async () => {
    await create('key');
    const answer = await create('key', { provider: 'p-2' });
    expect([answer.status, answer.problem, runs.length]).toEqual([422, 'idempotency-key-reused', 1]);
  });

  it('does not affect another caller with the same key', async () => {
    await create('key');
    const { key } = await makeKey(['sessions:write']);
    expect((await create('key', { provider: 'p-2' }, { key })).status).toBe(202);
  });

  it('runs once when 30 duplicates reach two processes concurrently', async () => {
    const other = await startAnother();
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) => create('key', {}, { on: index % 2 ? world : other })),
    );
    expect(runs).toHaveLength(1);
    expect(answers.filter(({ status }) => status !== 202 && status !== 409)).toEqual([]);
  });

  it('is in progress during the first run', async () => {
    const release = hold();
    const running = create('key');
    await started;
    const answer = await create('key');
    expect([answer.status, answer.problem]).toEqual([409, 'idempotency-in-progress']);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect((await create('key', { provider: 'p-2' })).problem).toBe('idempotency-key-reused');
    release();
    expect((await running).status).toBe(202);
  });

  it('runs again with the same creation id 15 seconds after its process was killed', async () => {
    const release = hold();
    const stale = create('key');
    await started;
    await world.sql('UPDATE idempotency_records SET lease_token = gen_random_uuid()'); // the process no longer renews its lease
    await world.advance('13 s');
    expect((await create('key')).problem).toBe('idempotency-in-progress');
    await world.advance('2 s');
    expect((await create('key', { provider: 'p-2' })).problem).toBe('idempotency-key-reused');
    run = async () => {};
    const second = await create('key');
    release();
    await stale;
    expect(runs).toEqual([second.body.id, second.body.id]);
    expect((await create('key')).text).toBe(second.text);
  });

  it('can be used again after a rejection', async () => {
    expect((await create('key', { provider: 7 })).status).toBe(400);
    run = () => Promise.reject(new Problem('unknown-provider', 'No.'));
    expect((await create('key')).status).toBe(422);
    run = async () => {};
    expect((await create('key', { provider: 'p-2' })).status).toBe(202);
  });

  it('runs again with the same creation id and body after an error', async () => {
    run = () => Promise.reject(new Error('broken'));
    expect((await create('key')).status).toBe(500);
    expect((await create('key', { provider: 'p-2' })).problem).toBe('idempotency-key-reused');
    expect((await create('key')).status).toBe(500);
    expect(runs[1]).toBe(runs[0]);
  });

  it('is free after a day', async () => {
    const first = await create('key');
    await world.advance('1 d');
    const later = await create('key', { provider: 'p-2' });
    expect([later.status, later.body.id === first.body.id]).toEqual([202, false]);
  });

  it('is rejected when it is longer than 255 characters or not ASCII', async () => {
    for (const key of ['x'.repeat(256), Buffer.from('ü').toString('latin1')]) {
      expect(await create(key)).toMatchObject({ status: 400, problem: 'bad-idempotency-key' });
    }
  });
});
