import { PrismaService } from '../../src/database/prisma.service.js';
import type { Page } from '../../src/http/request/page.js';
import { useArrivingSessions } from '../sessions/arriving-sessions.js';
import { openTransaction } from '../support/open-transaction.js';
import { useWorld } from '../world/use-world.js';
import { linkOf, type Note, notesIn, type Outcome, textOf, useFhir } from './fhir-calls.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, show, notesOf, regenerate } = sessions;
const { fhir, page, post, all, fault, keyWith } = useFhir(world);

/** A finished session with two notes, and their ids. */
async function finished(more: Parameters<typeof newSession>[0] = {}) {
  const session = newSession(more);
  toEnd(session);
  await world.settle();
  const { documents } = await notesOf(session.sessionId);
  const ids = documents.map(({ documentId }) => documentId).sort();
  expect(ids).toHaveLength(2);
  return { session, ids };
}

const idsOf = (notes: Note[]) => notes.map(({ id }) => id);
const found = async (query: string) => idsOf(await all(query)).sort();

describe('a search for notes', () => {
  it('is a valid searchset with the current version of each document', async () => {
    const { session, ids } = await finished({ partnerAppointmentId: 'a-1' });
    const bundle = await page('patient.identifier=c-1');
    const { id } = await show(session.sessionId);
    expect(idsOf(notesIn(bundle)).sort()).toEqual(ids);
    expect(bundle).toMatchObject({
      link: [{ relation: 'self', url: `${world.url}/fhir/DocumentReference?patient.identifier=c-1` }],
      entry: notesIn(bundle).map((note) => ({
        fullUrl: `${world.url}/fhir/DocumentReference/${note.id}`,
        search: { mode: 'match' },
      })),
    });
    expect(bundle).not.toHaveProperty('total');
    const [note] = notesIn(bundle);
    expect(note).toMatchObject({
      ...{ resourceType: 'DocumentReference', status: 'current', docStatus: 'preliminary' },
      subject: { type: 'Patient', identifier: { system: 'urn:notebridge:client', value: 'c-1' } },
      author: [{ identifier: { system: 'urn:notebridge:provider', value: 'p-1' } }],
      context: {
        period: { start: '2026-03-01T09:00:00.000Z' },
        encounter: [{ identifier: { system: 'urn:notebridge:appointment', value: 'a-1' } }],
        related: [{ identifier: { system: 'urn:notebridge:session', value: id } }, expect.anything()],
      },
    });
    expect(note && textOf(note)).toContain('### Plan'.slice(1));
  });

  it('is valid for each kind of document of the simulator, from a recording and from a text', async () => {
    const templates = ['1', '2', '3'].map((digit) => '11111111-1111-4111-8111-111111111111'.replaceAll('1', digit));
    for (const input of [
      { kind: 'recording', urls: ['https://files.example.test/1.wav'], content: 'Recording' },
      { kind: 'text', text: '# Slept <better>; *keeps* the plan.\r\n\u0000\u{1f642}' },
    ] as const) {
      const more = { noteTemplateIds: templates, input, externalTreatmentPlan: '## Plan' } as object;
      const session = newSession(more);
      toEnd(session);
      await world.settle();
    }
    expect((await all('')).map(textOf).filter((text) => text.length > 100)).toHaveLength(6);
  });

  it('finds notes by patient, with and without a system', async () => {
    const first = await finished({ partnerAppointmentId: 'a-1' });
    const second = await finished({ partnerAppointmentId: 'a-2', clientUserIds: [] });
    const both = [...first.ids, ...second.ids].sort();
    const expected: Record<string, string[]> = {
      '': both,
      'patient.identifier=c-1': first.ids,
      'patient:identifier=urn:notebridge:client|c-1': first.ids,
      'patient.identifier=urn:other|c-1': [],
      'patient.identifier=|c-1': [],
      'patient.identifier=c-2': [],
      'patient.identifier=nobody': [],
      [`_id=${first.ids[0]}`]: first.ids.slice(0, 1),
      [`_id=${first.ids[0]}&patient.identifier=c-1&date=ge2000`]: first.ids.slice(0, 1),
      [`_id=${second.ids[0]}&patient.identifier=c-1`]: [],
      '_id=00000000-0000-4000-8000-000000000000': [],
      '_id=x': [],
    };
    for (const [query, ids] of Object.entries(expected)) expect([query, await found(query)]).toEqual([query, ids]);
  });

  it('finds notes by date and last change, within the bounds of each prefix', async () => {
    const first = await finished();
    await world.advance('1 h');
    const second = await finished();
    const both = [...first.ids, ...second.ids].sort();
    const [early, late] = [(await all('')).at(0), (await all('')).at(-1)];
    for (const [name, from, to] of [
      ['date', early?.date, late?.date],
      ['_lastUpdated', early?.meta.lastUpdated, late?.meta.lastUpdated],
    ]) {
      const expected: Record<string, string[]> = {
        [`${name}=ge${from}`]: both,
        [`${name}=gt${from}`]: second.ids,
        [`${name}=${from}`]: first.ids,
        [`${name}=le${from}`]: first.ids,
        [`${name}=lt${from}`]: [],
        [`${name}=lt${to}`]: first.ids,
        [`${name}=gt${from}&${name}=lt${to}`]: [],
        [`${name}=ge${from}&${name}=lt${to}`]: first.ids,
        [`${name}=${String(from).slice(0, 4)}`]: both,
        [`${name}=le9999`]: both,
        [`${name}=ge0001`]: both,
        [`patient.identifier=c-1&${name}=ge${to}`]: second.ids,
        [`date=le${late?.date}&_lastUpdated=ge${late?.meta.lastUpdated}&${name}=ge${to}`]: second.ids,
      };
      for (const [query, ids] of Object.entries(expected)) expect([query, await found(query)]).toEqual([query, ids]);
    }
  });

  it.each(['', 'patient.identifier=c-1', 'date=ge2000', '_lastUpdated=ge2000'])(
    'gives each note once, page by page: %s',
    async (query) => {
      const made = [await finished(), await finished(), await finished()];
      const expected = made.flatMap(({ ids }) => ids).sort();
      for (const count of [1, 2, 4, 6]) {
        const paged = await all(`${query}&_count=${count}`);
        expect([count, idsOf(paged).sort()]).toEqual([count, expected]);
      }
      const first = await page(`${query}&_count=4&_format=json`);
      expect(notesIn(first)).toHaveLength(4);
      const next = new URL(linkOf(first, 'next') ?? '').searchParams;
      const given = [...new URLSearchParams(query).keys()].filter((name) => name !== 'patient.identifier');
      expect([...next.keys()].sort()).toEqual([...given, '_count', '_cursor', '_format'].sort());
      expect(Buffer.from(next.get('_cursor') ?? '', 'base64url').toString()).toMatch(
        /^\["[\dTZ:.-]+"(,"[\da-f-]{36}"){2},"([\da-f-]{36})?"\]$/,
      );
    },
  );

  it('loses no note while notes change between its pages', async () => {
    const made = [await finished(), await finished(), await finished()];
    const first = await page('_count=2');
    regenerate(made[0]?.session as never);
    regenerate(made[1]?.session as never);
    await world.settle();
    const rest = await all(new URL(linkOf(first, 'next') ?? '').search.slice(1));
    const seen = new Set([...idsOf(notesIn(first)), ...idsOf(rest)]);
    expect([...seen].sort()).toEqual(made.flatMap(({ ids }) => ids).sort());
  });

  it('shows a new version under the same id, after a reader’s last page', async () => {
    const { session, ids } = await finished();
    const before = await all('');
    const since = before.at(-1)?.meta.lastUpdated;
    expect(await all(`_lastUpdated=gt${since}`)).toEqual([]);
    regenerate(session);
    await world.settle();
    const changed = await all(`_lastUpdated=gt${since}`);
    expect(idsOf(changed).sort()).toEqual(ids);
    const newer = changed.find((note) => textOf(note).includes('Generation 2'));
    const old = before.find(({ id }) => id === newer?.id);
    expect(newer).toMatchObject({ status: 'current', docStatus: 'preliminary' });
    const timeOf = (note: Note | undefined) => Number(note?.meta.versionId.split('-')[0]);
    expect(timeOf(newer)).toBeGreaterThan(timeOf(old));
  });

  it('may show a change below the last one that was read, so readers overlap five minutes', async () => {
    const [early, late] = [await finished(), await finished()];
    const slow = await openTransaction(world.get(PrismaService));
    const { id } = await show(early.session.sessionId);
    await slow.tx.$executeRaw`UPDATE sessions SET updated_at = clock_timestamp() WHERE id = ${id}::uuid`;
    await world.advance('1 s');
    regenerate(late.session);
    await world.settle();
    const newest = (await all('')).at(-1)?.meta.lastUpdated ?? '';
    await slow.commit();
    expect(await found(`_lastUpdated=ge${newest}`)).toEqual(late.ids);
    const overlap = new Date(Date.parse(newest) - 5 * 60_000).toISOString();
    expect(await found(`_lastUpdated=ge${overlap}`)).toEqual([...early.ids, ...late.ids].sort());
  });

  it('names each client of a session with several, and finds its notes by each', async () => {
    const other = world.platform.simulator.state.users.add({
      ...{ role: 'Client', firstName: 'Di', lastName: 'Fox', providerUserIds: [sessions.provider] },
    } as never).userId;
    await world.sql("UPDATE people SET platform_user_id = $1, state = 'synced' WHERE external_id = 'c-2'", [other]);
    const { ids } = await finished({ clientUserIds: [sessions.client, other] });
    for (const client of ['c-1', 'c-2']) {
      const [note, ...more] = await all(`patient.identifier=${client}`);
      expect(idsOf([note as Note, ...more]).sort()).toEqual(ids);
      expect(note).not.toHaveProperty('subject');
      const patients = note?.context.related.filter(({ type }) => type === 'Patient');
      expect(patients?.map(({ identifier }) => identifier?.value)).toEqual(['c-1', 'c-2']);
    }
  });
});

describe('a search with its parameters in the body', () => {
  it('is answered as one with them in the URL, whose parameters count, too', async () => {
    const first = await finished();
    await finished({ clientUserIds: [] });
    const { status, body } = await post('patient.identifier=c-1&_format=json', { accept: 'text/html' });
    expect([status, idsOf(notesIn(body)).sort()]).toEqual([200, first.ids]);
    expect(body).toEqual(await page('patient.identifier=c-1&_format=json'));
    const both = await post(`_id=${first.ids[0]}`, { query: '?patient.identifier=c-1' });
    expect(idsOf(notesIn(both.body))).toEqual(first.ids.slice(0, 1));
    expect(notesIn((await post('')).body)).toHaveLength(4);
  });

  it('leads to a next page whose URL does not name the client, and has only that client’s notes', async () => {
    const mine = [await finished(), await finished()].flatMap(({ ids }) => ids);
    await finished({ clientUserIds: [] });
    const { body } = await post('patient.identifier=c-1&_count=3');
    const next = linkOf(body, 'next') ?? '';
    expect(decodeURIComponent(next)).not.toMatch(/c-1|patient/);
    const { body: rest } = await fhir<Parameters<typeof notesIn>[0]>(next);
    expect(linkOf(rest, 'next')).toBeUndefined();
    expect([...idsOf(notesIn(body)), ...idsOf(notesIn(rest))].sort()).toEqual(mine.sort());
  });

  it.each<[form: string, options: object, expected: unknown[]]>([
    ['patient.identifier=', {}, [400, 'value', 'bad-search']],
    ['author=x', {}, [400, 'not-supported', 'search-not-supported']],
    ['date=2026', { query: '?status=current' }, [400, 'not-supported', 'search-not-supported']],
    ['_id=a', { query: '?_id=a' }, [400, 'not-supported', 'search-not-supported']],
    ['_format=xml', {}, [406, 'not-supported', 'not-acceptable']],
    ['patient.identifier=%00', {}, [400, 'invalid', 'bad-value']],
    [`_id=${'x'.repeat(20_000)}`, {}, [413, 'too-long', 'body-too-large']],
    ['{}', { type: 'application/json' }, [415, 'not-supported', 'unsupported-media-type']],
  ])('is rejected as one by GET: %s', async (form, options, expected) => {
    const { status, body } = await post<Outcome>(form, options);
    expect([status, body.issue[0]?.code, body.issue[0]?.details.coding[0]?.code]).toEqual(expected);
  });
});

describe('a search by a former id', () => {
  it('is 409 with the id to use, as in lists of sessions', async () => {
    const { ids } = await finished();
    expect((await world.call('POST', '/v1/clients/c-1/rename', { body: { externalId: 'c-9' } })).status).toBe(200);
    expect(await fault('/fhir/DocumentReference?patient.identifier=c-1')).toEqual([409, 'conflict', 'renamed']);
    const { text } = await fhir('/fhir/DocumentReference?patient.identifier=c-1');
    expect(text).toContain('externalId: c-9');
    expect(await found('patient.identifier=c-9')).toEqual(ids);
  });
});

describe('a single note', () => {
  it('is read by its id, with its version', async () => {
    const { ids } = await finished();
    const [listed] = (await all('')).filter(({ id }) => id === ids[0]);
    const { body, headers } = await fhir<Note>(`/fhir/DocumentReference/${ids[0]}`);
    expect(body).toEqual(listed);
    expect(headers.get('etag')).toBe(`W/"${body.meta.versionId}"`);
    expect(Date.parse(headers.get('last-modified') ?? '')).toBe(
      Math.floor(Date.parse(body.meta.lastUpdated) / 1000) * 1000,
    );
  });

  it('has another version for a caller who sees other content, and once a person has another id', async () => {
    const { ids } = await finished();
    const path = `/fhir/DocumentReference/${ids[0]}`;
    const etagFor = async (key?: string) => (await fhir<Note>(path, { key })).headers.get('etag');
    const before = await etagFor();
    expect(await etagFor()).toBe(before);
    expect(await etagFor(await keyWith('notes:read'))).not.toBe(before);
    await world.call('POST', '/v1/clients/c-1/rename', { body: { externalId: 'c-9' } });
    expect(await etagFor()).not.toBe(before);
  });

  it.each(['x', '00000000-0000-4000-8000-000000000000', 'a'.repeat(100), '%00'])('%s is not found', async (id) => {
    expect(await fault(`/fhir/DocumentReference/${id}`)).toEqual([404, 'not-found', 'unknown-document']);
  });
});

describe('what a caller sees', () => {
  it('without sessions:read has no people and no appointment, here and at /v1', async () => {
    const { session, ids } = await finished({ partnerAppointmentId: 'a-1' });
    const key = await keyWith('notes:read');
    const notes = await all('', { key });
    expect(idsOf(notes).sort()).toEqual(ids);
    notes.push((await fhir<Note>(`/fhir/DocumentReference/${ids[0]}`, { key })).body);
    const path = `/v1/sessions/${session.sessionId}/notes`;
    notes.push(...notesIn((await fhir<never>(path, { key, accept: 'application/fhir+json' })).body));
    expect(notes).toHaveLength(5);
    for (const note of notes) {
      expect(note).not.toHaveProperty('subject');
      expect(note).not.toHaveProperty('author');
      expect(JSON.stringify(note)).not.toMatch(/"(c-1|p-1|a-1)"/);
    }
    expect((await all('patient.identifier=c-1')).map(({ id }) => id).sort()).toEqual(ids);
    const next = linkOf(await page('patient.identifier=c-1&_count=1'), 'next') ?? '';
    for (const refused of ['/fhir/DocumentReference?patient.identifier=c-1', next])
      expect(await fault(refused, { key })).toEqual([403, 'forbidden', 'forbidden-scope']);
  });

  it('is in the audit log: each shown session with its people, as of the notes at /v1', async () => {
    const first = await finished({ partnerAppointmentId: 'a-1' });
    await finished({ clientUserIds: [] });
    interface Entry {
      action: string;
      outcome: string;
      subjects: Record<string, string[]>;
    }
    const newest = async () => {
      const { items } = (await world.call<Page<Entry>>('GET', '/v1/audit?limit=5')).body;
      return items.find(({ action }) => action !== 'GET /v1/audit');
    };
    await notesOf(first.session.sessionId);
    const { subjects } = (await newest()) as Entry;
    expect(Object.keys(subjects).sort()).toEqual(['client', 'platform-session', 'provider', 'session']);
    await page('patient.identifier=c-1');
    expect(await newest()).toMatchObject({ action: 'GET /fhir/DocumentReference', outcome: 'ok', subjects });
    await post('patient.identifier=c-1');
    expect(await newest()).toMatchObject({ action: 'POST /fhir/DocumentReference/_search', outcome: 'ok', subjects });
    await fhir(`/fhir/DocumentReference/${first.ids[0]}`);
    expect(await newest()).toMatchObject({ action: 'GET /fhir/DocumentReference/:id', outcome: 'ok', subjects });
    await post('patient.identifier=c-2');
    expect((await newest())?.subjects).toEqual({ client: ['c-2'] });
    await page('');
    expect((await newest())?.subjects.session).toHaveLength(2);
  });
});

describe('notes of a deleted client', () => {
  it('are shown as removed if the setting erases them', async () => {
    await world.restart({ ERASE_NOTES_OF_DELETED_CLIENTS: 'erase' });
    const { ids } = await finished();
    expect((await world.call('DELETE', '/v1/clients/c-1', { wait: 60 })).status).toBe(200);
    await world.settle();
    const notes = await all('patient.identifier=c-1');
    expect(idsOf(notes).sort()).toEqual(ids);
    for (const note of notes) expect(textOf(note)).toContain('These notes were removed');
  });
});
