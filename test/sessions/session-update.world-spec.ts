import type { FaultKind, FaultRule } from '../../simulator/gate/fault-rule.js';
import { PlatformClient } from '../../src/platform/clients/platform-client.js';
import { PlatformError } from '../../src/platform/contract/platform-errors.js';
import type { SessionResponse } from '../../src/sessions/model/session-view.js';
import { UpdatesRepository } from '../../src/sessions/update/updates.repository.js';
import { contractFile } from '../support/contract-file.js';
import { DAP, SOAP } from '../world/mirrored-people.js';
import { useWorld } from '../world/use-world.js';
import { type Problem, texts, useArrivingSessions } from './arriving-sessions.js';

const world = useWorld({ settings: { PLATFORM_TIMEOUT_SECONDS: '60' }, platform: { processingEvents: false } });
const sessions = useArrivingSessions(world);
const { show, notesOf, onPlatform, toEnd, unheard, fetches } = sessions;

const TEXT = { text: { text: 'First notes of the provider.' } };
const RECORDING = {
  recording: { recordingUrls: ['https://files.example.test/1.wav'], recordingContent: 'Recording' },
};
const UNCLEAR = 'urn:notebridge:problem:platform-unclear';

/** Requests a session and has the platform finish it. */
async function done(input: object = TEXT): Promise<SessionResponse> {
  const body = { provider: 'p-1', client: 'c-1', noteTemplateIds: [SOAP], input, partnerAppointmentId: 'visit-1' };
  const { id, sessionId } = (await world.call<SessionResponse>('POST', '/v1/sessions', { body, wait: 60 })).body;
  toEnd(onPlatform(sessionId));
  await world.settle();
  const session = await show(id);
  expect([session.state, session.notesRevision]).toEqual(['Done', 1]);
  return session;
}

const update = (id: string, body: unknown) =>
  world.call<SessionResponse & Problem>('PATCH', `/v1/sessions/${id}`, { body });
const calls = () => world.platform.arrivals('updateSession');
const templatesOf = async ({ id }: SessionResponse) => (await show(id)).noteTemplateIds;

describe('an update', () => {
  it('returns the updated session, and its new notes follow', async () => {
    const session = await done();
    const change = { input: { text: 'Second notes.' }, noteTemplateIds: [DAP], externalTreatmentPlan: 'A plan.' };
    const { status, body } = await update(session.sessionId ?? '', change);
    expect([status, body.id, body.state, body.noteTemplateIds]).toEqual([200, session.id, 'Processing', [SOAP, DAP]]);
    const simulated = onPlatform(session.sessionId);
    expect(simulated).toMatchObject({
      input: { kind: 'text', text: 'Second notes.' },
      externalTreatmentPlan: 'A plan.',
    });
    toEnd(simulated);
    await world.settle();
    expect((await notesOf(session.id)).documents.map(({ noteTemplateId }) => noteTemplateId)).toEqual([SOAP, DAP]);
  });

  it('sends only fields that are not blank', async () => {
    const session = await done(RECORDING);
    const speakerMapping = { A: sessions.client, B: sessions.provider };
    const blank = { externalTreatmentPlan: '  ', noteTemplateIds: [], input: { text: ' ' } };
    expect((await update(session.id, { ...blank, speakerMapping })).status).toBe(200);
    expect(onPlatform(session.sessionId)).toMatchObject({ speakerMapping, noteTemplateIds: [SOAP] });
  });

  it.each<[string, object, object, string]>([
    ['without a field', TEXT, {}, ''],
    ['of the speakers of a text', TEXT, { speakerMapping: { A: SOAP } }, '/speakerMapping'],
    ['of the text of a recording', RECORDING, { input: { text: 'x' } }, '/input'],
  ])('%s is rejected without a call', async (_name, input, change, pointer) => {
    const session = await done(input);
    expect((await update(session.id, change)).body).toMatchObject({ status: 400, pointer });
    expect(calls()).toBe(0);
  });

  it('is left to the platform when the session was not requested here', async () => {
    const session = sessions.newSession();
    toEnd(session);
    await world.settle();
    const { body } = await update(session.sessionId, { input: { text: 'x' } });
    expect(body).toMatchObject({ status: 400, platformMessage: expect.stringContaining('recording') });
  });

  it.each<[string, Partial<FaultRule>, number, string, string | null]>([
    ['400', { kind: 'status', status: 400 }, 400, 'platform-rejected', null],
    ['403', { kind: 'forbid' }, 503, 'platform-unauthorized', '60'],
    ['404', { kind: 'status', status: 404 }, 404, 'not-on-platform', null],
    ['429 with Retry-After', { kind: 'rate-limit', retryAfterSeconds: 7 }, 503, 'platform-rate-limited', '7'],
    ['429 without Retry-After', { kind: 'rate-limit', retryAfter: 'absent' }, 503, 'platform-rate-limited', '5'],
  ])('changes nothing and is not retried if the platform answers with %s', async (_, rule, status, type, wait) => {
    const session = await done();
    const before = fetches();
    world.platform.injectFault({ operation: 'updateSession', kind: 'forbid', ...rule });
    const answer = await update(session.id, { externalTreatmentPlan: 'A plan.' });
    expect([answer.status, answer.body.type]).toEqual([status, `urn:notebridge:problem:${type}`]);
    expect(answer.headers.get('retry-after')).toBe(wait);
    // A 429 lets every call about sessions wait, also the fetch that follows.
    await world.advance('10 s');
    await world.settle();
    expect(await show(session.id)).toEqual({ ...session, fetchedAt: expect.any(String) });
    expect([calls(), fetches() - before]).toEqual([1, 1]);
  });

  it('passes on the reason for which the platform rejects it', async () => {
    const session = await done();
    Object.assign(onPlatform(session.sessionId), { editedByHand: true });
    const { body } = await update(session.id, { input: { text: 'Second notes.' } });
    expect(body).toMatchObject({ status: 400, platformMessage: expect.stringContaining('edited') });
  });

  it('erases nothing if the answer has only required fields; the change is fetched', async () => {
    const session = await done(RECORDING);
    const contents = async () => {
      const of = async (part: string) => (await world.call<object>('GET', `/v1/sessions/${session.id}/${part}`)).body;
      return [(await notesOf(session.id)).documents, await of('transcript'), await of('insights')];
    };
    const before = await contents();
    world.platform.set({ updateAnswer: 'lean', webhookDropRate: 1 });
    const { status, body } = await update(session.id, { noteTemplateIds: [DAP] });
    expect(status).toBe(200);
    const { state, noteTemplateIds, noteTemplates, fetchedAt, updatedAt, notesRevision, nextStep } = body;
    expect(body).toEqual({
      ...session,
      state,
      noteTemplateIds,
      noteTemplates,
      fetchedAt,
      updatedAt,
      notesRevision,
      nextStep,
    });
    expect(body.recordingDurationMs).toBeGreaterThan(0);
    expect(await contents()).toEqual(before);
    toEnd(onPlatform(session.sessionId));
    world.platform.set({ updateAnswer: 'whole', webhookDropRate: 0 });
    await world.settle();
    expect((await notesOf(session.id)).documents).toMatchObject([{ supersededAt: null }, { supersededAt: null }]);
  });

  it('is followed by a fetch even if its answer and event are lost with the process', async () => {
    const session = await done();
    jest.spyOn(world.get(PlatformClient), 'updateSession').mockImplementationOnce(async () => {
      await sessions.refresh(onPlatform(session.sessionId));
      await world.settle(); // a fetch that began before the update took effect is stored
      throw new PlatformError('unknown-outcome', 'updateSession', { reason: 'the process ends here' });
    });
    jest.spyOn(world.get(UpdatesRepository), 'end').mockResolvedValueOnce();
    await update(session.id, { noteTemplateIds: [DAP] });
    onPlatform(session.sessionId).noteTemplateIds = [SOAP, DAP];
    await world.settle();
    expect(await templatesOf(session)).toEqual([SOAP]);
    await world.advance('5 min'); // it can no longer take effect
    await world.settle();
    expect(await templatesOf(session)).toEqual([SOAP, DAP]);
    expect((await show(session.id)).nextStep.what).toBe('none');
  });

  it('is followed by two fetches if its answer is lost: at once, and when it can no longer take effect', async () => {
    const session = await done();
    const before = fetches();
    world.platform.injectFault({ operation: 'updateSession', kind: 'refuse' });
    expect((await update(session.id, { noteTemplateIds: [DAP] })).status).toBe(504);
    const counts: number[] = [];
    for (const span of ['1 s', '10 s', '5 min', '1 d'] as const) {
      await world.settle();
      counts.push(fetches() - before);
      await world.advance(span);
    }
    expect(counts).toEqual([1, 1, 1, 2]);
  });

  it('returns 504 if the answer is about another session, and does not store it', async () => {
    const session = await done();
    const { providerUserId } = onPlatform(session.sessionId);
    const notes = [
      { sessionDocumentId: 'd-1', noteTemplateId: SOAP, notes: [{ category: 'Plan', text: 'Of another.' }] },
    ];
    const body = { sessionId: 's-2', providerUserId, clientUserIds: [], noteTemplateIds: [], state: 'Done', notes };
    world.platform.injectFault({ operation: 'updateSession', kind: 'answer', count: 1, body });
    const answer = await update(session.id, { noteTemplateIds: [DAP] });
    expect([answer.status, answer.body.type]).toEqual([504, UNCLEAR]);
    await world.settle();
    expect(texts(await notesOf(session.id))).not.toContain('Of another.');
    expect(await templatesOf(session)).toEqual([SOAP]);
  });

  it.each<[number, FaultRule['kind'] | 'none']>([
    [200, 'none'],
    [504, 'commit-then-cut'],
  ])('returns %s if the database is away after the call, and is fetched later (fault: %s)', async (status, kind) => {
    const session = await done();
    if (kind !== 'none') world.platform.injectFault({ operation: 'updateSession', kind });
    const client = world.get(PlatformClient);
    const call = client.updateSession.bind(client);
    jest.spyOn(client, 'updateSession').mockImplementationOnce(async (...sent) => {
      const answer = unheard(() => call(...sent));
      await answer.catch(() => undefined);
      await world.sql('ALTER TABLE sessions RENAME TO sessions_away');
      return answer;
    });
    const answer = await update(session.id, { noteTemplateIds: [DAP] });
    await world.sql('ALTER TABLE sessions_away RENAME TO sessions');
    expect(answer.status).toBe(status);
    await world.advance('5 min');
    await world.settle();
    expect(await templatesOf(session)).toEqual([SOAP, DAP]);
  });

  it.each<FaultKind>(['commit-then-cut', 'commit-then-500', 'bad-json', 'commit-late'])(
    'returns 504 when its answer is lost (%s); it is not repeated, and its change is fetched',
    async (kind) => {
      const session = await done();
      world.platform.injectFault({ operation: 'updateSession', kind });
      const { status, body } = await update(session.id, { noteTemplateIds: [DAP] });
      expect([status, body.type]).toEqual([504, UNCLEAR]);
      await world.settle();
      expect([await templatesOf(session), calls()]).toEqual([[SOAP, DAP], 1]);
    },
  );

  it('returns 404 for an unknown session, and 409 for one that the platform does not have yet', async () => {
    expect((await update('nowhere', { externalTreatmentPlan: 'x' })).status).toBe(404);
    world.platform.injectFault({ operation: 'createSession', kind: 'refuse' });
    const wish = { provider: 'p-1', noteTemplateIds: [SOAP], input: TEXT };
    const unknown = await world.call<SessionResponse>('POST', '/v1/sessions', { body: wish, wait: 60 });
    const { body } = await update(unknown.body.id, { externalTreatmentPlan: 'x' });
    expect(body).toMatchObject({ status: 409, state: 'Unknown' });
  });
});

describe('the deprecated update of note templates', () => {
  const put = (id: string) =>
    world.call<SessionResponse & Problem>('PUT', `/v1/sessions/${id}/note-templates`, {
      body: { noteTemplateIds: [DAP] },
    });

  it('adds templates and returns the session', async () => {
    const { status, body } = await put((await done()).id);
    expect([status, body.noteTemplateIds]).toEqual([200, [SOAP, DAP]]);
    const { paths } = (await world.call<{ paths: Record<string, object> }>('GET', '/openapi.json')).body;
    expect(paths['/v1/sessions/{id}/note-templates']).toMatchObject({ put: { deprecated: true } });
  });

  it('returns 501 without its contract entry, while the update works', async () => {
    await world.restart({ PLATFORM_CONTRACT: contractFile(['updateSessionTemplates']) });
    const { status, body } = await put('any');
    expect([status, body.missing?.join()]).toEqual([501, expect.stringContaining('updateSessionTemplates')]);
    expect((await update('any', { externalTreatmentPlan: 'x' })).status).toBe(404);
  });
});
