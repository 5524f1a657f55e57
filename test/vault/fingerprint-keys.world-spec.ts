import type { Type } from '@nestjs/common';
import { request } from '../../harness/world/request.js';
import { ADMIN_KEY, FINGERPRINT_KEYS } from '../../harness/world/settings.js';
import type { WorldService } from '../../harness/world/world-service.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { beginRegeneration, takeStep } from '../../simulator/sessions/session-run.js';
import { PrismaService, type Tx } from '../../src/database/prisma.service.js';
import { Idempotency } from '../../src/idempotency/idempotency.js';
import { ProfileSeal } from '../../src/people/model/profile.js';
import { DependentsRepository } from '../../src/people/store/dependents.repository.js';
import { HandedOutUrls } from '../../src/platform/upload/handed-out-urls.js';
import type { NotesResponse } from '../../src/sessions/model/session-view.js';
import { importsIn } from '../imports/imports.js';
import { clientLine, clientsCsv, providerLine, providersCsv } from '../support/bulk.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { keyPair, rotate } from './rotate.js';

const world = useWorld();
const { imported, planned, start, show, rows, transition } = importsIn(world);

const F2 = keyPair('f2', 50);
/** The settings of a replacement, in their order: first the new key is added, then it comes first, then the old one goes. */
const [OLD_FIRST, NEW_FIRST] = [`${FINGERPRINT_KEYS},${F2}`, `${F2},${FINGERPRINT_KEYS}`];

const restart = (keys: string) => world.restart({ FINGERPRINT_KEYS: keys });
const rotateToNew = () => rotate(world, 'fingerprints', { FINGERPRINT_KEYS: NEW_FIRST });
const put = (path: string, body: object, wait?: number) =>
  world.call('PUT', `/v1/${path}`, { body, ...(wait !== undefined && { wait }) });
const provider = (id: string, email = `${id}@example.org`) => ({ email, firstName: id, lastName: 'Osei' });
const mirror = async (id: string) => {
  expect((await put(`providers/${id}`, provider(id), 60)).body.sync.state).toBe('synced');
};
const stateOf = async (path: string) => {
  const { state, error } = (await world.call('GET', `/v1/${path}`)).body.sync;
  return [state, error?.code ?? null];
};
const foundBy = async (email: string) => {
  const { body } = await world.call<{ items: { externalId: string }[] }>('POST', '/v1/people/search', {
    body: { email },
  });
  return body.items.map(({ externalId }) => externalId);
};
/** The ids of the keys that made the values of a column, as it holds them. */
const keysIn = async (column: string, table = 'people') => {
  const header = `convert_from(substring(${column} FROM 2 FOR get_byte(${column}, 0)), 'UTF8')`;
  const found = await world.sql<{ key: string }>(
    `SELECT DISTINCT ${header} AS key FROM ${table} WHERE ${column} IS NOT NULL ORDER BY 1`,
  );
  return found.map(({ key }) => key);
};

/** Two processes whose first keys differ, as while a key is replaced. */
async function bothOrders(): Promise<WorldService> {
  await restart(OLD_FIRST);
  return world.startAnother({ FINGERPRINT_KEYS: NEW_FIRST });
}

const of = <T>(service: WorldService | undefined, type: Type<T>): T =>
  (service?.app ?? world.app).get(type, { strict: false });

const callAt = ({ url }: WorldService, method: string, path: string, body?: object) =>
  request(`${url}${path}`, method, { body, key: ADMIN_KEY });

describe('two processes whose first keys differ', () => {
  it('never give one email to two people, even at the same time', async () => {
    const other = await bothOrders();
    const people = await Promise.all(
      ['p-1', 'p-2'].map(async (id) => {
        await put(`providers/${id}`, provider(id, `${id}@example.org`));
        const [row] = await world.sql<{ id: string }>('SELECT id FROM people WHERE external_id = $1', [id]);
        return row?.id ?? '';
      }),
    );
    const claim = (service: WorldService | undefined, id: string, tx: Tx) => {
      const fingerprints = of(service, ProfileSeal).emailFingerprints('shared@example.org');
      return of(service, DependentsRepository).claimEmails(tx, [{ id, fingerprints }]);
    };
    for (const [first, second] of [
      [undefined, other],
      [other, undefined],
    ]) {
      let blocked: Promise<unknown> | undefined;
      await of(first, PrismaService).transaction(async (tx) => {
        expect(await claim(first, people[0] ?? '', tx)).toMatchObject([{ holderId: people[0] }]);
        blocked = of(second, PrismaService).transaction((later) => claim(second, people[1] ?? '', later));
        await world.eventually('the second claim waits', async () => {
          const [waiting] = await world.sql('SELECT 1 FROM pg_locks WHERE NOT granted');
          return waiting;
        });
      });
      expect(await blocked).toMatchObject([{ holderId: people[0] }]);
      expect(await world.sql(`SELECT person_id FROM email_claims WHERE person_id = $1`, [people[1]])).toHaveLength(1);
      await world.sql('DELETE FROM email_claims WHERE person_id = $1 OR fingerprint = ANY ($2)', [
        people[0],
        of(undefined, ProfileSeal).emailFingerprints('shared@example.org'),
      ]);
    }
  });

  it('show that an email is taken, and pass it on when its person is deleted', async () => {
    await mirror('p-1');
    const other = await bothOrders();
    await callAt(other, 'PUT', '/v1/providers/p-2', provider('p-2', 'P-1@example.org'));
    await world.settle();
    expect(await stateOf('providers/p-2')).toEqual(['needs-review', 'email-taken']);
    expect(world.platform.simulator.state.users.withEmail('p-1@example.org')).toHaveLength(1);
    await world.call('DELETE', '/v1/providers/p-1');
    await world.settle();
    expect(await stateOf('providers/p-1')).toEqual(['deleted', null]);
    expect(await stateOf('providers/p-2')).toEqual(['synced', null]);
  });

  it('run a request with an Idempotency-Key once', async () => {
    const other = await bothOrders();
    const run = jest.fn(async () => ({ status: 200, headers: {}, value: 'done' }));
    const repeated = { scope: 'caller route key', compared: '{}' };
    const twenty = Array.from({ length: 20 }, (_, at) =>
      of(at % 2 ? other : undefined, Idempotency)
        .once(repeated, run)
        .catch((error: Error) => error.message),
    );
    await Promise.all(twenty);
    for (const service of [other, undefined]) {
      const { answer, replayed } = await of(service, Idempotency).once(repeated, run);
      expect([answer.value, replayed]).toEqual(['done', true]);
    }
    expect(run).toHaveBeenCalledTimes(1);
    const changed = of(other, Idempotency).once({ ...repeated, compared: '{"other":1}' }, run);
    await expect(changed).rejects.toMatchObject({ type: expect.stringContaining('idempotency-key-reused') });
  });
});

describe('a rotation of the fingerprints', () => {
  it('recomputes all of them, so that the old key can be removed', async () => {
    await mirror('p-1');
    await mirror('p-2');
    await put('providers/p-1', provider('p-1', 'renamed@example.org'), 60);
    await restart(NEW_FIRST);
    expect(await keysIn('email_fingerprint')).toEqual(['f1']);
    const { keys, left, kept } = await rotateToNew();
    expect([keys.map(({ key, droppable }) => [key, droppable]), left, kept]).toEqual([
      [
        ['f2', false],
        ['f1', true],
      ],
      ...[0, 0],
    ]);
    for (const column of ['profile_hash', 'email_fingerprint']) expect(await keysIn(column)).toEqual(['f2']);
    expect(await keysIn('fingerprint', 'email_claims')).toEqual(['f2']);
    expect(await world.sql('SELECT FROM email_claims')).toHaveLength(2); // the platform has p-1 with its former email
    await restart(F2);
    expect(await foundBy('renamed@example.org')).toEqual(['p-1']);
    await put('providers/p-3', provider('p-3', 'p-1@example.org'), 60);
    expect(await stateOf('providers/p-3')).toEqual(['needs-review', 'email-taken']);
  });

  it('does not change what a person shows, while an email stays the same', async () => {
    await mirror('p-1');
    await put('providers/p-2', provider('p-2', 'p-1@example.org'), 60);
    expect(await stateOf('providers/p-2')).toEqual(['needs-review', 'email-taken']);
    await restart(NEW_FIRST);
    await put('providers/p-1', provider('p-1'), 60);
    expect(await keysIn('email_fingerprint')).toEqual(['f1']);
    await rotateToNew();
    await world.settle();
    expect(await stateOf('providers/p-2')).toEqual(['needs-review', 'email-taken']);
    expect(await foundBy('p-1@example.org')).toEqual(['p-1', 'p-2']);
    await restart(F2);
    await world.call('DELETE', '/v1/providers/p-1');
    await world.settle();
    expect(await stateOf('providers/p-2')).toEqual(['synced', null]);
  });

  it('keeps the email of a create without an answer claimed', async () => {
    await restart(OLD_FIRST);
    await put('providers/p-1', provider('p-1'));
    const held = await world.untilHeld({ operation: 'createProvider' });
    const { left } = await rotate(world, 'fingerprints', { FINGERPRINT_KEYS: NEW_FIRST });
    expect(left).toBe(0);
    expect(await keysIn('attempt_email')).toEqual(['f2']);
    expect(await keysIn('fingerprint', 'email_claims')).toEqual(['f2']);
    await held.answer();
    expect(await stateOf('providers/p-1')).toEqual(['synced', null]);
  });

  it('skips locked people, and recomputes them in a later pass', async () => {
    await mirror('p-1');
    await mirror('p-2');
    await restart(NEW_FIRST);
    const client = await world.database.pool.connect();
    await client.query('BEGIN');
    await client.query(`SELECT FROM people WHERE external_id = 'p-1' FOR UPDATE`);
    const rotating = rotateToNew();
    await world.eventually('p-2 has its new fingerprint', async () =>
      (await keysIn('email_fingerprint')).includes('f2'),
    );
    expect(await keysIn('email_fingerprint')).toEqual(['f1', 'f2']);
    await client.query('COMMIT');
    client.release();
    expect((await rotating).left).toBe(0);
    expect(await keysIn('email_fingerprint')).toEqual(['f2']);
  });

  it('keeps file URLs and idempotent answers from before it', async () => {
    await world.restart();
    const [url, compared] = ['https://files.example.test/1.wav', '{}'];
    await world.get(HandedOutUrls).remember('recording', url);
    const run = jest.fn(async (id: string) => ({ status: 200, headers: {}, value: id }));
    const first = await world.get(Idempotency).once({ scope: 'scope', compared }, run);
    await restart(NEW_FIRST);
    const { keys, kept, columns } = await rotateToNew();
    expect([kept, keys[1]]).toMatchObject([3, { key: 'f1', droppable: false }]);
    expect(columns.flatMap(({ reason }) => reason ?? [])).toEqual([
      expect.stringContaining('RECORDINGS_RETENTION_DAYS'),
      ...Array.from({ length: 2 }, () => expect.stringContaining('24 hours')),
    ]);
    await expect(world.startAnother({ FINGERPRINT_KEYS: F2 })).rejects.toThrow('FINGERPRINT_KEYS lacks the key f1');
    expect([...(await world.get(HandedOutUrls).known('recording', [url]))]).toEqual([url]);
    expect((await world.get(HandedOutUrls).known('compliance', [url])).size).toBe(0);
    const again = await world.get(Idempotency).once({ scope: 'scope', compared }, run);
    expect(again).toEqual({ answer: first.answer, replayed: true });
  });
});

describe('imports while fingerprints are by different keys', () => {
  const files = () => [
    providersCsv([providerLine('p-1')]),
    clientsCsv(['c-1', 'c-2', 'c-3'].map((id) => clientLine(id, ['p-1']))),
  ];

  it('wait for the rotation, and then treat no known person as new or changed', async () => {
    await imported('', files());
    const calls = world.platform.arrivals();
    await restart(NEW_FIRST);
    const id = await start('dryRun=true', files());
    await world.settle();
    expect((await show(id)).state).toBe('staging');
    expect(await world.sql('SELECT attempts FROM imports WHERE id = $1', [id])).toEqual([{ attempts: 0 }]);
    await rotateToNew();
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'planned', planned: { unchanged: 4 } });
    expect(world.platform.arrivals()).toBe(calls);
  });

  it('are planned again after a correction with the rows of the upload recomputed', async () => {
    await imported('', files());
    const { id } = await planned('dryRun=true', [
      providersCsv([providerLine('p-1')]),
      clientsCsv([clientLine('c-4', ['p-1']), clientLine('c-5', ['p-x'])]),
    ]);
    await restart(NEW_FIRST);
    const corrections = [{ file: 'clients.csv', line: 3, providers: ['p-1'] }];
    const { status } = await world.call('PATCH', `/v1/imports/${id}/rows`, { body: { rows: corrections } });
    expect(status).toBe(202);
    await world.settle();
    expect((await show(id)).state).toBe('staging');
    await rotateToNew();
    await world.settle();
    expect(await show(id)).toMatchObject({ state: 'planned', planned: { unchanged: 1, 'create-or-link': 2 } });
  });

  it('still detect a file with everyone under another id', async () => {
    await imported('', files());
    await restart(NEW_FIRST);
    const twins = clientsCsv(['c-1', 'c-2', 'c-3'].map((id) => `x-${clientLine(id, ['p-1'])}`));
    const id = await start('', [twins]);
    await world.settle();
    await rotateToNew();
    await world.settle();
    const { state, guards } = await show(id);
    expect([state, guards.filter(({ exceeded }) => exceeded).map(({ name }) => name)]).toEqual([
      'planned',
      ['looksDoubled'],
    ]);
  });

  it('are recomputed from the cells of rejected rows', async () => {
    await start('', [clientsCsv([clientLine('', ['p-x'], 'nameless@example.org')])]);
    await world.settle();
    const keys = () => keysIn('email_fingerprint', 'import_rows');
    const before = await keys();
    await restart(NEW_FIRST);
    await rotateToNew();
    expect([before, await keys()]).toEqual([['f1'], ['f2']]);
  });

  it('start rows that were planned before the rotation, with fingerprints by the new key', async () => {
    const { id } = await planned('dryRun=true', [providersCsv([providerLine('p-7'), providerLine('p-8')])]);
    await restart(NEW_FIRST);
    await rotateToNew();
    expect((await transition(id, 'apply')).status).toBe(202);
    await world.settle();
    expect((await rows(id)).map(({ outcome }) => outcome)).toEqual(['created', 'created']);
    for (const column of ['profile_hash', 'email_fingerprint']) expect(await keysIn(column)).toEqual(['f2']);
  });
});

describe('notes and insights', () => {
  const userOf = (id: string) => world.platform.usersOf(id)[0]?.userId ?? '';

  async function finishedSession() {
    await mirror('p-1');
    await put('clients/c-1', { ...provider('c-1'), providers: ['p-1'] }, 60);
    const session = createSession(world.platform.simulator.state, {
      providerUserId: userOf('p-1'),
      clientUserIds: [userOf('c-1')],
      noteTemplateIds: [SOAP],
      input: { kind: 'text', text: 'They discussed the week.' },
      date: '2026-03-01T09:00:00.000Z',
    });
    while (session.nextStep) takeStep(world.platform.simulator.state, session);
    await world.settle();
    return session;
  }
  const notesOf = async (id: string) =>
    (await world.call<NotesResponse>('GET', `/v1/sessions/${id}/notes`)).body.documents;
  const refresh = async (id: string) => {
    await world.sql('UPDATE sessions SET due_at = now(), wanted_generation = wanted_generation + 1');
    await world.settle();
    return notesOf(id);
  };

  it('get no new revision if they are unchanged', async () => {
    const { sessionId } = await finishedSession();
    const before = await notesOf(sessionId);
    await restart(NEW_FIRST);
    expect(await refresh(sessionId)).toEqual(before);
    expect((await rotateToNew()).left).toBe(0);
    for (const table of ['session_documents', 'session_insights'])
      expect(await keysIn('fingerprint', table)).toEqual(['f2']);
    await restart(F2);
    expect(await refresh(sessionId)).toEqual(before);
    expect(before).toMatchObject([{ revision: 1 }]);
  });

  it('do not return after a rotation if retention removed them', async () => {
    const session = await finishedSession();
    const { sessionId } = session;
    await world.sql('UPDATE document_revisions SET notes = NULL, removed_at = now()');
    await world.sql(
      `UPDATE session_insights SET transcript = NULL, topics = NULL, named_entities = NULL, analytics = NULL, removed_at = now()`,
    );
    await restart(NEW_FIRST);
    const { kept, keys, columns } = await rotateToNew();
    expect([kept, keys[1]]).toMatchObject([2, { key: 'f1', droppable: false }]);
    expect(columns.flatMap(({ reason }) => reason ?? [])).toEqual([
      expect.stringContaining('notes that were removed'),
      expect.stringContaining('insights that were removed'),
    ]);
    await restart(NEW_FIRST);
    const removed = [{ revision: 1, notes: [], removedAt: expect.any(String) }];
    expect(await refresh(sessionId)).toMatchObject(removed);
    expect(await world.sql('SELECT FROM session_insights WHERE transcript IS NOT NULL')).toEqual([]);

    beginRegeneration(world.platform.simulator.state, session, [SOAP]);
    while (session.nextStep) takeStep(world.platform.simulator.state, session);
    expect(await refresh(sessionId)).toMatchObject([{ revision: 2, removedAt: null }]);
    expect((await rotateToNew()).kept).toBe(1); // the insights, which are as they were
  });
});
