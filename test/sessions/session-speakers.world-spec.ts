import type { SimulatedSession } from '../../simulator/sessions/session.js';
import type { AuditPageResponse } from '../../src/audit/audit.dto.js';
import { peopleOf } from '../people/mirroring.js';
import { identitiesIn } from '../support/renamed-people.js';
import { SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { type Problem, useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { newSession, toEnd, onPlatform } = sessions;
const { put, remove } = peopleOf(world);
const { rename, merge } = identitiesIn(world);

interface Speaker {
  kind: string;
  externalId: string;
  platformUserId: string;
}
type Speakers = Record<string, Speaker>;
type Read = { speakerMapping: Record<string, string>; speakers: Speakers } & {
  analyticsSummary: { talkingRatio: object };
  people: Speakers;
};

const STRANGER = 'ffffffff-ffff-4fff-8fff-ffffffffffff';

/** Has the platform finish a session with these speakers. @returns the platform's id */
async function done(speakerMapping?: SimulatedSession['speakerMapping']): Promise<string> {
  const session = newSession({ noteTemplateIds: [SOAP] });
  Object.assign(session, speakerMapping && { speakerMapping });
  toEnd(session);
  await world.settle();
  return session.sessionId;
}
const read = async (id: string, part: 'transcript' | 'insights') =>
  (await world.call<Read>('GET', `/v1/sessions/${id}/${part}`)).body;
const speakersOf = async (id: string) => (await read(id, 'transcript')).speakers;
const update = (id: string, speakerMapping: object) =>
  world.call<Problem & { externalId?: string }>('PATCH', `/v1/sessions/${id}`, { body: { speakerMapping } });
/** Adds a client of p-1 to the platform. @returns its user */
const newClient = async (externalId: string) =>
  (await put(`clients/${externalId}`, { providers: ['p-1'] })).platformUserId ?? '';
const speaker = (kind: string, externalId: string, platformUserId: string): Speaker => ({
  kind,
  externalId,
  platformUserId,
});

describe('the speakers of a session', () => {
  it('are named by the EHR’s ids in the transcript, next to the platform’s mapping', async () => {
    const { provider, client } = sessions;
    const { speakerMapping, speakers } = await read(await done(), 'transcript');
    expect(speakerMapping).toEqual({ A: provider, B: client });
    expect(speakers).toEqual({ A: speaker('provider', 'p-1', provider), B: speaker('client', 'c-1', client) });
  });

  it('are named by the EHR’s ids in the insights, by the keys of the measures', async () => {
    const { provider, client } = sessions;
    const { analyticsSummary, people } = await read(await done(), 'insights');
    expect(Object.keys(analyticsSummary.talkingRatio)).toEqual([provider, client]);
    expect(people).toEqual({
      [provider]: speaker('provider', 'p-1', provider),
      [client]: speaker('client', 'c-1', client),
    });
  });

  it('are absent if the EHR does not know them', async () => {
    const id = await done({ A: STRANGER, B: sessions.client });
    expect(Object.keys(await speakersOf(id))).toEqual(['B']);
    expect(Object.keys((await read(id, 'insights')).people)).toEqual([sessions.client]);
  });

  it('are empty in a session from a text', async () => {
    const session = newSession({ noteTemplateIds: [SOAP], input: { kind: 'text', text: 'They spoke.' } });
    toEnd(session);
    await world.settle();
    expect((await read(session.sessionId, 'insights')).people).toEqual({});
  });

  it('have their current ids after a rename and after a merge that keeps both users', async () => {
    const second = await newClient('c-3');
    const id = await done({ A: sessions.provider, B: sessions.client, C: second });
    expect((await rename('providers/p-1', 'p-9')).status).toBe(200);
    expect((await merge('clients/c-3', 'c-1')).status).toBe(200);
    expect((await rename('clients/c-1', 'c-9')).status).toBe(200);
    const expected = {
      A: speaker('provider', 'p-9', sessions.provider),
      B: speaker('client', 'c-9', sessions.client),
      C: speaker('client', 'c-9', second),
    };
    expect(await speakersOf(id)).toEqual(expected);
    expect(Object.values((await read(id, 'insights')).people)).toEqual(Object.values(expected));
  });

  it('keep their ids after the EHR deleted them', async () => {
    const second = await newClient('c-3');
    const id = await done({ A: sessions.provider, B: second });
    await remove('clients/c-3');
    expect((await speakersOf(id)).B).toEqual(speaker('client', 'c-3', second));
  });

  it('are named in the audit entries of those who read them', async () => {
    const second = await newClient('c-3');
    const id = await done({ A: sessions.other, B: second });
    for (const part of ['transcript', 'insights'] as const) {
      await read(id, part);
      const query = `action=${encodeURIComponent(`GET /v1/sessions/:id/${part}`)}`;
      const { items } = (await world.call<AuditPageResponse>('GET', `/v1/audit?${query}`)).body;
      expect(items.map(({ subjects }) => [subjects.provider, subjects.client])).toEqual([
        [
          ['p-1', 'p-2'],
          ['c-1', 'c-3'],
        ],
      ]);
    }
  });

  it('may have odd labels and ids; those that name a prototype are left out', async () => {
    const { provider } = sessions;
    const labels = ['toString', 'text'];
    const entries = ['__proto__', 'constructor', ...labels].map((label) => `"${label}": "${provider}"`);
    const speakers = await speakersOf(await done(JSON.parse(`{${entries.join()}, "A": "a\\u0000b", "B": ""}`)));
    const expected = speaker('provider', 'p-1', provider);
    expect(Object.entries(speakers)).toEqual(labels.map((label) => [label, expected]));
  });
});

describe('an update of the speaker mapping', () => {
  it('names people by the EHR’s ids and by UUIDs of the platform', async () => {
    const id = await done();
    const mapping = { A: { client: 'c-1' }, B: { provider: 'p-1' }, C: sessions.other };
    expect((await update(id, mapping)).status).toBe(200);
    expect(onPlatform(id).speakerMapping).toEqual({
      A: sessions.client,
      B: sessions.provider,
      C: sessions.other,
    });
    await world.settle();
    expect(Object.values(await speakersOf(id)).map(({ externalId }) => externalId)).toEqual(['c-1', 'p-1', 'p-2']);
  });

  it('names the people in its audit entry', async () => {
    const id = await done();
    await update(id, { A: { provider: 'p-2' } });
    const query = `provider=p-2&action=${encodeURIComponent('PATCH /v1/sessions/:id')}`;
    expect((await world.call<AuditPageResponse>('GET', `/v1/audit?${query}`)).body.items).toHaveLength(1);
  });

  it.each<[string, object, number, string]>([
    ['an unknown provider', { provider: 'nobody' }, 422, 'unknown-provider'],
    ['an unknown client', { client: 'nobody' }, 422, 'unknown-client'],
    ['a provider named as a client', { client: 'p-1' }, 422, 'unknown-client'],
    ['a client that is not on the platform yet', { client: 'c-2' }, 409, 'client-not-mirrored'],
    ['two people', { client: 'c-1', provider: 'p-1' }, 400, 'validation'],
  ])('rejects %s without a call', async (_name, named, status, type) => {
    const id = await done();
    const { body } = await update(id, { B: sessions.client, A: named });
    expect(body).toMatchObject({ status, type: `urn:notebridge:problem:${type}`, pointer: '/speakerMapping/A' });
    expect(world.platform.arrivals('updateSession')).toBe(0);
  });

  it('rejects a former id with the id to use', async () => {
    const id = await done();
    await newClient('c-3');
    await rename('providers/p-2', 'p-9');
    await merge('clients/c-3', 'c-1');
    const rejected = async (named: object) => {
      const { status, type, externalId, pointer } = (await update(id, { A: named })).body;
      return [status, type.replace('urn:notebridge:problem:', ''), externalId, pointer];
    };
    expect(await rejected({ provider: 'p-2' })).toEqual([409, 'renamed', 'p-9', '/speakerMapping/A']);
    expect(await rejected({ client: 'c-3' })).toEqual([409, 'merged', 'c-1', '/speakerMapping/A']);
  });

  it('rejects a client whose deletion the EHR requested', async () => {
    const id = await done();
    await newClient('c-3');
    world.platform.injectFault({ operation: 'deleteUser', kind: 'forbid' });
    await remove('clients/c-3');
    expect((await update(id, { A: { client: 'c-3' } })).body).toMatchObject({
      status: 409,
      type: 'urn:notebridge:problem:client-not-mirrored',
    });
  });

  it('rejects the label __proto__', async () => {
    const id = await done();
    const body = Buffer.from(`{"speakerMapping": {"__proto__": {"provider": "p-1"}}}`);
    const headers = { 'content-type': 'application/json' };
    expect((await world.call('PATCH', `/v1/sessions/${id}`, { body, headers })).status).toBe(400);
  });
});

it('a key without notes:read reads neither speakers nor people', async () => {
  const { body } = await world.call<{ key: string }>('POST', '/v1/api-keys', {
    body: { name: 'ehr', scopes: ['sessions:read', 'people:read'] },
  });
  const id = await done();
  for (const part of ['transcript', 'insights'])
    expect((await world.call('GET', `/v1/sessions/${id}/${part}`, { key: body.key })).status).toBe(403);
});
