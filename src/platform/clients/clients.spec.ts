import { inspect } from 'node:util';
import type { PlatformError } from '../contract/platform-errors.js';
import type { Session } from '../contract/session-answer.js';
import type { PlatformHttp } from '../http/platform-http.js';
import {
  API_KEY,
  contractOf,
  FULL_CONTRACT,
  httpTo,
  json,
  LoopbackPlatform,
  stopTimeouts,
} from './loopback-platform.spec-support.js';
import { PlatformClient } from './platform-client.js';
import { UsersClient } from './users-client.js';

const contract = contractOf(FULL_CONTRACT);
const session: Session = {
  sessionId: 's1',
  noteTemplateIds: ['t1'],
  providerUserId: 'p1',
  clientUserIds: [],
  state: 'Done',
  sessionDurationMs: null,
  transcript: {
    utterances: [{ text: 'hi', start: 0, end: 9, speaker: 'A', words: [{ text: 'hi', start: 0, end: 9 }] }],
    speakerMapping: { A: 'p1' },
  },
  notes: [
    {
      sessionDocumentId: 'd',
      noteTemplateId: 't1',
      notes: [{ category: 'Plan', text: 'x', formatting: { nestingLevel: 1 } }],
    },
  ],
  analyticsSummary: { talkingRatio: { p1: { ratio: 0.5 } } },
};
/** Longer than the maximum of a database index. */
const UNSTORABLE = { userId: 'u'.repeat(3_000) };
const fail = () => {
  throw new Error('The call succeeded.');
};
const unreadable = (place: string) =>
  expect.objectContaining({ kind: 'unknown-outcome', message: expect.stringContaining(place) });

describe('the platform client', () => {
  let platform: LoopbackPlatform;
  let http: PlatformHttp;

  stopTimeouts();
  beforeAll(async () => {
    platform = await LoopbackPlatform.start();
    http = httpTo(platform.url);
  });
  afterAll(async () => {
    await platform.stop();
  });

  const answering = (answer: unknown) => {
    platform.answer = (_request, response) => json(response, 200, answer);
  };
  const last = () => {
    const heard = platform.heard.at(-1);
    return `${heard?.method} ${heard?.url} ${heard?.body}`.trim();
  };

  describe('users', () => {
    let users: UsersClient;
    beforeAll(() => {
      users = new UsersClient(http);
    });

    it('checks whether a user exists', async () => {
      answering({ isUserExists: true, userId: 'u1' });
      expect(await users.checkUser({ email: 'a@b.c' })).toEqual({ status: 200, userId: 'u1' });
      expect(last()).toBe('POST /users/check {"email":"a@b.c"}');
      answering({ isUserExists: false });
      expect(await users.checkUser({ email: 'a@b.c' })).toEqual({ status: 200, userId: undefined });
    });

    it.each([
      [{ isUserExists: true }, '/userId'],
      [{ isUserExists: 'yes' }, '/isUserExists'],
      [[], '/isUserExists'],
    ])('rejects a check that answers %j as unreadable', async (answer, place) => {
      answering(answer);
      await expect(users.checkUser({ email: 'a@b.c' })).rejects.toEqual(unreadable(place));
    });

    it('creates providers and clients', async () => {
      platform.answer = (_request, response) => json(response, 201, { userId: 'u1', inviteUrl: 'https://invite' });
      const person = { firstName: 'F', lastName: 'L' };
      expect(await users.createProvider({ email: 'a@b.c', ...person })).toEqual({
        status: 201,
        userId: 'u1',
        inviteUrl: 'https://invite',
      });
      // The spec names an invite URL only for providers.
      answering({ userId: 'u2', inviteUrl: 'https://invite' });
      expect(await users.createClient({ ...person, therapistUserId: 'u1', partnerUserId: 'x' })).toEqual({
        status: 200,
        userId: 'u2',
      });
      expect(last()).toBe(
        'POST /users/clients {"firstName":"F","lastName":"L","therapistUserId":"u1","partnerUserId":"x"}',
      );
    });

    it.each([{}, { userId: '' }, { userId: 7 }, { userId: 'u\0' }, { userId: '\ud800' }, UNSTORABLE, 'u1', null])(
      'a create that answers %j has an unknown outcome',
      async (answer) => {
        answering(answer);
        await expect(users.createProvider({ email: 'a@b.c', firstName: 'F', lastName: 'L' })).rejects.toEqual(
          unreadable('/userId'),
        );
      },
    );

    it("sets a client's providers and deletes, regardless of the answer's content", async () => {
      platform.answer = (_request, response) => response.writeHead(204).end();
      expect(await users.setClientProviders('u2', ['u1', 'u3'])).toEqual({ status: 204 });
      expect(last()).toBe('POST /users/u2/providers {"providerUserIds":["u1","u3"]}');
      platform.answer = (_request, response) => response.writeHead(200).end('OK');
      await users.deleteUser('u2');
      expect(last()).toBe('DELETE /users/u2');
    });

    describe('deleteUser, if the contract locates `deleted`', () => {
      const deletes = { deleteUser: { response: { deleted: '/result/ok' } } };
      const operations = { ...FULL_CONTRACT.operations, ...deletes };
      const located = contractOf({ ...FULL_CONTRACT, operations, errors: { message: '/text' } });
      let reading: UsersClient;
      beforeAll(() => {
        reading = new UsersClient(httpTo(platform.url, located));
      });

      it('succeeds if the answer says true', async () => {
        answering({ result: { ok: true } });
        await reading.deleteUser('u2');
      });

      it('fails with the message of the platform if the answer says false', async () => {
        answering({ result: { ok: false }, text: 'has open sessions' });
        const failure = { kind: 'rejected', status: 200, platformMessage: 'has open sessions' };
        await expect(reading.deleteUser('u2')).rejects.toMatchObject(failure);
      });

      it.each([{}, { result: {} }, { result: { ok: 'false' } }, { result: { ok: null } }, { result: { ok: 0 } }, []])(
        'has an unknown outcome if the answer says %j',
        async (answer) => {
          answering(answer);
          await expect(reading.deleteUser('u2')).rejects.toEqual(unreadable('/result/ok'));
        },
      );

      it('has an unknown outcome if the answer is empty', async () => {
        platform.answer = (_request, response) => response.writeHead(204).end();
        await expect(reading.deleteUser('u2')).rejects.toEqual(unreadable('an empty answer'));
      });
    });

    it('rejects a delete without an id, and sends nothing', async () => {
      const before = platform.heard.length;
      await expect(users.deleteUser('')).rejects.toMatchObject({ kind: 'rejected' });
      expect(platform.heard).toHaveLength(before);
    });
  });

  describe('sessions', () => {
    let sessions: PlatformClient;
    beforeAll(() => {
      sessions = new PlatformClient(http, contract);
    });

    it('creates', async () => {
      answering({ sessionId: 's1' });
      const request = { providerUserId: 'p', noteTemplateIds: ['t'], input: { text: { text: 'x' } } };
      expect(await sessions.createSession(request)).toEqual({ sessionId: 's1' });
      answering({ id: 's1' });
      await expect(sessions.createSession(request)).rejects.toEqual(unreadable('/sessionId'));
    });

    it('reads and updates a session', async () => {
      answering({ ...session, extra: 'not of the spec' });
      expect(await sessions.getSession('s1')).toEqual({ ...session, incomplete: [] });
      expect(await sessions.updateSession('s1', { input: { text: 'y' } })).toMatchObject(session);
      expect(last()).toBe('PATCH /api/v2/therapy-session/s1 {"input":{"text":"y"}}');
      expect(await sessions.updateSessionTemplates('s1', ['t2'])).toMatchObject(session);
      expect(last()).toBe('PUT /sessions/s1/templates {"noteTemplateIds":["t2"]}');
    });

    it.each([
      [{ ...session, state: 7 }, '/state, found a number'],
      [{ ...session, sessionId: null }, '/sessionId, found null'],
      ['Done', 'the top, found a text'],
    ])('locates the fault of an answer that is not a Session: %#', async (answer, place) => {
      answering(answer);
      await expect(sessions.getSession('s1')).rejects.toEqual(unreadable(`(no Session at ${place})`));
    });

    it('loses an unreadable part', async () => {
      answering({ ...session, topics: 'none' });
      expect(await sessions.getSession('s1')).toEqual({ ...session, incomplete: ['topics'] });
    });

    it('compares ids exactly as the platform writes them', async () => {
      answering({ ...session, sessionId: 'ABC' });
      expect(await sessions.getSession('ABC')).toMatchObject({ sessionId: 'ABC' });
      await expect(sessions.getSession('abc')).rejects.toEqual(unreadable("another session's id"));
    });

    describe('if the answer is about another session', () => {
      const A = '6F1C2A34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
      const B = '0e1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b';
      const calls: [string, () => Promise<unknown>][] = [
        ['getSession', () => sessions.getSession(A)],
        ['updateSession', () => sessions.updateSession(A, { input: { text: 'y' } })],
        ['updateSessionTemplates', () => sessions.updateSessionTemplates(A, ['t2'])],
      ];

      it.each(calls)('%s fails as unreadable, without showing an id', async (_operation, call) => {
        answering({ ...session, sessionId: B });
        const error: PlatformError = await call().then(fail, (reason) => reason);
        expect([error.kind, error.isUnreadable]).toEqual(['unknown-outcome', true]);
        expect(error.message).toContain("(another session's id at /sessionId, found a text)");
        expect(inspect(error)).not.toContain(B);
      });
    });

    it('reads a session of several megabytes', async () => {
      const text = 'word '.repeat(1_000_000);
      answering({ ...session, topics: [{ headline: 'h', gist: text, start: 0, end: 1 }] });
      expect((await sessions.getSession('s1')).topics?.[0]?.gist).toHaveLength(text.length);
    });

    describe('of a processing id', () => {
      const get = { method: 'GET', path: '/{processingId}' };
      const reading = (response: Record<string, string>) => {
        const located = contractOf({
          apiKey: { header: 'K' },
          operations: { getProcessingSession: { ...get, response } },
        });
        return new PlatformClient(httpTo(platform.url, located), located);
      };
      const both = { sessionId: '/id', session: '/s' };

      it('reads the id at the location of the contract, and keeps the whole answer', async () => {
        const raw = { data: { id: 's9' } };
        answering(raw);
        expect(await sessions.getProcessingSession('x')).toEqual({ sessionId: 's9', session: undefined, raw });
        expect(await sessions.getProcessingSession('x', { expectedSessionId: 's9' })).toMatchObject({ raw });
      });

      it('reads the session, and takes its id', async () => {
        answering({ s: session });
        expect(await reading({ session: '/s' }).getProcessingSession('x')).toMatchObject({ sessionId: 's1', session });
        answering({ id: 's1', s: session });
        expect(await reading(both).getProcessingSession('x')).toMatchObject({ sessionId: 's1', session });
      });

      it('fails as unreadable if the answer names two sessions', async () => {
        answering({ id: 's2', s: session });
        const failing = reading(both).getProcessingSession('x');
        await expect(failing).rejects.toEqual(unreadable("(another session's id at /s/sessionId, found a text)"));
      });

      it.each([
        [{ sessionId: '/id' }, '/id'],
        [{ session: '/s' }, '/s/sessionId'],
        [both, '/id'],
      ])('fails as unreadable if an earlier answer named another session (%j)', async (response, place) => {
        answering({ id: 's1', s: session });
        const failing = reading(response as Record<string, string>).getProcessingSession('x', {
          expectedSessionId: 's0',
        });
        await expect(failing).rejects.toEqual(unreadable(`(another session's id at ${place}, found a text)`));
      });
    });

    it('requests an upload URL, with the method and headers for the file', async () => {
      answering({ put: 'https://store/a?sig=1' });
      expect(
        await sessions.uploadTarget('recordingUploadUrl', { fileName: 'r', contentType: 'audio/webm', size: 5 }),
      ).toEqual({
        uploadUrl: 'https://store/a?sig=1',
        url: 'https://store/a?sig=1',
        method: 'PUT',
        headers: { 'content-type': 'audio/webm', 'x-type': 'audio/webm' },
      });
      expect(last()).toBe('POST /recording-url {"name":"r","type":"audio/webm","bytes":5}');
      answering({ put: '/relative' });
      await expect(
        sessions.uploadTarget('recordingUploadUrl', { fileName: 'r', contentType: 'a/b', size: 5 }),
      ).rejects.toEqual(unreadable('/put'));
    });
  });

  describe('compliance', () => {
    let compliance: PlatformClient;
    beforeAll(() => {
      compliance = new PlatformClient(http, contract);
    });

    it('requests an upload URL, and submits', async () => {
      answering({ put: 'https://store/a', get: 'https://files/a' });
      expect(
        await compliance.uploadTarget('complianceUploadUrl', {
          fileName: 'n.pdf',
          contentType: 'application/pdf',
          size: 1,
        }),
      ).toMatchObject({ uploadUrl: 'https://store/a', url: 'https://files/a' });
      expect(last()).toBe('GET /compliance/upload-url?name=n.pdf');
      answering({ jobId: 'j' });
      expect(await compliance.submitComplianceJob({ files: [{ id: '1', url: 'https://files/a' }] })).toEqual({
        jobId: 'j',
      });
    });

    it.each([{}, { jobId: '' }, { jobId: 7 }])(
      'a submission that answers %j has an unknown outcome',
      async (answer) => {
        answering(answer);
        await expect(compliance.submitComplianceJob({ files: [{ id: '1', url: 'https://files/a' }] })).rejects.toEqual(
          unreadable('/jobId'),
        );
      },
    );

    it.each([
      ['ok', 'completed'],
      ['bad', 'failed'],
      ['queued', 'running'],
    ])('reads %s as %s', async (status, state) => {
      answering({ status, more: 1 });
      expect(await compliance.getComplianceJob('j')).toEqual({ state, raw: { status, more: 1 } });
    });

    it('reports the state as unknown if the contract does not locate it', async () => {
      const bare = contractOf({ apiKey: { header: 'K' } });
      answering({ status: 'ok' });
      expect((await new PlatformClient(httpTo(platform.url, bare), bare).getComplianceJob('j')).state).toBe('unknown');
    });
  });

  it('fetches a recorder token', async () => {
    answering({ otpToken: 'otp-secret' });
    expect(await new PlatformClient(http, contract).initiateAuth('p1')).toBe('otp-secret');
    expect(platform.heard.at(-1)?.headers.authorization).toBe(`Bearer ${API_KEY}`);
    expect(last()).toBe('POST /authentication/initiate-auth {"userId":"p1"}');
  });

  it.each([{}, { otpToken: '' }, { otpToken: 7 }])('rejects %j as a recorder token', async (answer) => {
    answering(answer);
    await expect(new PlatformClient(http, contract).initiateAuth('p1')).rejects.toEqual(unreadable('/otpToken'));
  });
});
