import type { Service } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createSession } from '../simulator/sessions/session-routes.js';
import { beginRegeneration } from '../simulator/sessions/session-run.js';
import type { Page } from '../src/http/request/page.js';
import type { NotesResponse, SessionResponse } from '../src/sessions/model/session-view.js';
import { openedDumpOf } from './support/opened-dump.js';
import { type Mirror, useMirrors } from './support/service.js';

const SOAP = '11111111-1111-4111-8111-111111111111';

/** Words that stand for one client, odd enough to be found only where something of it is kept. */
const GONE = {
  names: ['Verschwindia', 'Erasowitz', 'Altnamia', 'Plannamia', 'Doppelnamia'],
  emails: ['gone@weg.example.org', 'old@weg.example.org', 'plan@weg.example.org', 'twice@weg.example.org'],
  texts: ['Fluesternotiz', 'Geheimplanung'],
};
const STAYS = { names: ['Bleibtinia'], emails: ['stays@hier.example.org'], texts: ['Bleibenotiz'] };

const found = (dump: string, words: readonly string[]) => words.filter((word) => dump.includes(word));
const wordsOf = ({ names, emails, texts }: typeof GONE) => [...names, ...emails, ...texts];

describe('a client that is deleted', () => {
  const newMirror = useMirrors();
  let mirror: Mirror;
  let service: Service;

  beforeAll(async () => {
    mirror = await newMirror({
      platform: { stepMs: 1 },
      // An answer that a stalled machine makes late is not lost: the platform would be asked by it in an hour.
      env: {
        ...{ ERASE_NOTES_OF_DELETED_CLIENTS: 'erase', UNKNOWN_OUTCOME_GRACE_SECONDS: '3600' },
        PLATFORM_TIMEOUT_SECONDS: '60',
      },
    });
    const { state } = mirror.simulator;
    service = await mirror.start({ PLATFORM_WEBHOOK_SECRET: state.settings.webhookSecret });
    state.settings = { ...state.settings, webhookUrl: `${service.url}/webhooks/platform` };
    const body = { email: 'p-1@example.org', firstName: 'Pia', lastName: 'Ruiz' };
    await service.call('PUT', '/v1/providers/p-1', { body, wait: 60 });
  });

  const dump = () => openedDumpOf(mirror.database.url);
  const put = (id: string, [firstName, lastName]: string[], email?: string) =>
    service.call('PUT', `/v1/clients/${id}`, { body: { firstName, lastName, email, providers: ['p-1'] }, wait: 60 });
  const importOf = async (query: string, ...lines: string[]) => {
    const content = ['externalId,email,firstName,lastName,providers', ...lines].join('\n');
    const { id } = await service.startImport(`kind=clients&${query}`, [
      { name: 'clients.csv', type: 'text/csv', content },
    ]);
    return id;
  };
  const newSession = async (client: string, [text, plan = text]: string[]): Promise<string> => {
    const body = {
      provider: 'p-1',
      client,
      noteTemplateIds: [SOAP],
      input: { text: { text } },
      externalTreatmentPlan: plan,
    };
    const { body: made } = await service.call<SessionResponse>('POST', '/v1/sessions', {
      ...{ body, wait: 60, idempotencyKey: `session-of-${client}-${text?.length}` },
    });
    await until('its notes are there', async () => (await notesOf(made.id)).documents?.[0]?.notes.length);
    return made.id;
  };
  const notesOf = async (id: string) => (await service.call<NotesResponse>('GET', `/v1/sessions/${id}/notes`)).body;
  const erasures = async () =>
    (await service.call<Page<{ outcome: string }>>('GET', '/v1/audit?action=erasure&subject=c-gone')).body.items;

  test('goes with every copy at once, and its sessions stay under its external id', async () => {
    const [first = '', last = '', old = '', planned = '', twice = ''] = GONE.names;
    const [email = '', oldEmail = '', planEmail = '', twiceEmail = ''] = GONE.emails;
    await put('c-gone', [old, last], oldEmail);
    await put('c-gone', [first, last], email);
    await put('c-stays', [...STAYS.names, 'Adler'], STAYS.emails[0]);
    const line = (name: string, mail: string) => `c-gone,${mail},${name},${last},p-1`;
    // One row changes the client and is not applied, another is rejected for its provider.
    const plan = await importOf('dryRun=true', line(planned, planEmail));
    await until(
      'it is planned',
      async () => (await service.call<{ state: string }>('GET', `/v1/imports/${plan}`)).body.state === 'planned',
    );
    const rejected = await importOf('', line(twice, twiceEmail).replace('p-1', 'nobody'));
    await service.importEnded(rejected);
    const session = await newSession('c-gone', GONE.texts);
    const other = await newSession('c-stays', STAYS.texts);
    // Notes of several clients go with the last of them.
    const userOf = (id: string) => mirror.usersOf(id)[0]?.userId ?? '';
    const { sessionId: joint } = createSession(mirror.simulator.state, {
      providerUserId: userOf('p-1'),
      clientUserIds: [userOf('c-gone'), userOf('c-stays')],
      noteTemplateIds: [SOAP],
      input: { kind: 'text', text: 'Gemeinsamkeit' },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: undefined,
    });
    await until('the notes of both are there', async () => (await notesOf(joint)).documents?.[0]?.notes.length);
    expect(found(await dump(), [...wordsOf(GONE), ...wordsOf(STAYS)])).toEqual([...wordsOf(GONE), ...wordsOf(STAYS)]);

    mirror.hold({ operation: 'deleteUser' });
    const answer = await service.call('DELETE', '/v1/clients/c-gone');
    expect([answer.status, answer.body]).toMatchObject([202, { email: null, firstName: '', lastName: '' }]);
    const after = await dump();
    expect(found(after, wordsOf(GONE))).toEqual([]);
    expect(found(after, wordsOf(STAYS))).toEqual(wordsOf(STAYS));
    expect(await erasures()).toMatchObject([
      {
        subjects: { client: ['c-gone'], session: [session] },
        outcome: expect.stringMatching(/^names and email, .*2 rows of imports/),
      },
    ]);

    const { body: rows } = await service.call<Page<object>>('GET', `/v1/imports/${plan}/rows`);
    expect(rows.items).toMatchObject([{ externalId: 'c-gone', outcome: 'skipped', code: 'erased' }]);
    const shown = (await service.call<SessionResponse>('GET', `/v1/sessions/${session}`)).body;
    expect(shown.clients).toEqual(['c-gone']);
    expect((await notesOf(session)).documents).toMatchObject([{ notes: [], removedAt: expect.any(String) }]);
    for (const kept of [other, joint]) expect((await notesOf(kept)).documents[0]?.notes).not.toEqual([]);

    mirror.release();
    await until(
      'it is deleted',
      async () => (await service.call('GET', '/v1/clients/c-gone')).body.sync.state === 'deleted',
    );
    // What the platform makes of it afterwards is not kept either.
    const { state } = mirror.simulator;
    const made = state.sessions.list().find(({ sessionId }) => sessionId === shown.sessionId);
    if (!made) throw new Error('The platform lost the session.');
    beginRegeneration(state, made, [SOAP]);
    await until('its notes are made anew', () => made.generation === 2 && made.state === 'Done');
    await service.call('POST', '/v1/sessions/refreshes', { body: { session } });
    const pending = async () =>
      (await mirror.sql('SELECT 1 FROM sessions WHERE wanted_generation > fetched_generation')).length;
    await until('the session was fetched', async () => (await pending()) === 0);
    expect((await notesOf(session)).documents).toMatchObject([{ revision: 1, notes: [] }]);
    expect(found(await dump(), wordsOf(GONE))).toEqual([]);
    expect((await service.call<SessionResponse>('GET', `/v1/sessions/${session}`)).body.clients).toEqual(['c-gone']);
    expect(await erasures()).toHaveLength(1);

    await service.call('DELETE', '/v1/clients/c-stays', { wait: 60 });
    expect((await notesOf(joint)).documents).toMatchObject([{ notes: [], removedAt: expect.any(String) }]);
    expect(found(await dump(), [...wordsOf(STAYS), 'Gemeinsamkeit'])).toEqual([]);
  });

  test('keeps of a creation without an answer its email alone, until the platform was asked by it', async () => {
    const [email, name] = ['lost@weg.example.org', 'Verlorenia'];
    mirror.trouble({ operation: 'createClient', kind: 'commit-then-cut' });
    await service.call('PUT', '/v1/clients/c-lost', {
      body: { firstName: name, lastName: name, email, providers: ['p-1'] },
    });
    await until('it got no answer', () => mirror.usersOf('c-lost').length > 0);
    await until('that is known', async () => (await service.call('GET', '/v1/clients/c-lost')).body.sync.error);
    expect((await service.call('DELETE', '/v1/clients/c-lost')).body).toMatchObject({ email: null, firstName: '' });
    expect(found(await dump(), [name, email])).toEqual([email]);
    await mirror.sql(`UPDATE people SET attempt_look_up_at = now(), due_at = now() WHERE external_id = 'c-lost'`);
    await until(
      'it is deleted',
      async () => (await service.call('GET', '/v1/clients/c-lost')).body.sync.state === 'deleted',
    );
    expect(mirror.usersOf('c-lost')).toEqual([]);
    expect(found(await dump(), [name, email])).toEqual([]);
  });

  test('of a row that was under way stays gone when its import is retried', async () => {
    mirror.hold({ operation: 'createClient' });
    const id = await importOf('', 'c-late,late@weg.example.org,Spaetia,Spaetia,p-1');
    await until('it is applied', async () => (await service.call('GET', '/v1/clients/c-late')).status === 200);
    await service.call('DELETE', '/v1/clients/c-late');
    mirror.release();
    await service.importEnded(id);
    const rowsOf = async () => (await service.call<Page<object>>('GET', `/v1/imports/${id}/rows`)).body.items;
    const row = { externalId: 'c-late', outcome: 'skipped', code: 'erased' };
    expect(await rowsOf()).toMatchObject([row]);
    await service.call('POST', `/v1/imports/${id}/retry`, { body: {} });
    expect(await service.importEnded(id)).toMatchObject({ state: 'completed' });
    expect(await rowsOf()).toMatchObject([row]);
  });
});
