import type { HealthReport } from '../../src/operations/overview/health-report.js';
import { factsOf, OPERATION_NAMES, type OperationName } from '../../src/platform/contract/operations.js';
import { PlatformHttp } from '../../src/platform/http/platform-http.js';
import type { SendingResponse } from '../../src/sending/sending.dto.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

const HELD = 'urn:notebridge:problem:sending-held';
/** The operations of the specification that only read. */
const READING: OperationName[] = ['checkUser', 'getSession', 'getProcessingSession', 'getComplianceJob'];

type SendingAnswer = SendingResponse & { type: string };

const sending = async () => (await world.call<SendingResponse>('GET', '/v1/sending')).body;
const put = (body: object) => world.call<SendingAnswer>('PUT', '/v1/sending', { body });
const hold = (more: object = {}) => put({ held: true, reason: 'CASE-1', ...more });
const release = (more: object = {}) => put({ held: false, ...more });

/** Values for the placeholders of every operation. */
const PARAMETERS = Object.fromEntries(
  ['userId', 'sessionId', 'processingId', 'jobId', 'fileName', 'contentType', 'size'].map((name) => [name, 'x']),
);
/** Makes a call as a feature does. @returns the kind of its error; undefined if it was answered */
const kindOfCall = (operation: OperationName, http = world.get(PlatformHttp)) =>
  http.call({ operation, parameters: PARAMETERS, body: {} }, () => undefined).catch(({ kind }) => kind);

describe('an operator', () => {
  it('holds and releases, which the audit log records with the change', async () => {
    expect(await sending()).toEqual({
      ...{ held: false, heldBySetting: false, since: null, by: null, reason: null },
    });
    const { status, body } = await hold();
    const held = { held: true, heldBySetting: false, by: 'admin', reason: 'CASE-1' };
    expect([status, body]).toEqual([200, { ...held, since: world.now().toISOString() }]);
    await world.restart();
    expect(await sending()).toEqual(body);
    expect((await release()).body.held).toBe(false);
    const entries = await world.sql<{ outcome: string }>(
      `SELECT outcome FROM audit_entries WHERE action = 'PUT /v1/sending' ORDER BY id`,
    );
    expect(entries.map(({ outcome }) => outcome)).toEqual(['held for CASE-1', 'released']);
  });

  it('needs a reason to hold, which is a code', async () => {
    expect((await put({ held: true })).status).toBe(400);
    expect((await hold({ reason: 'Jane Roe left' })).status).toBe(400);
    expect((await sending()).held).toBe(false);
  });

  it('says only with a release that the database was restored', async () => {
    expect((await hold({ restored: true })).status).toBe(400);
    expect((await sending()).held).toBe(false);
  });

  it('cannot release while HOLD_SENDING is true', async () => {
    await world.restart({ HOLD_SENDING: 'true' });
    expect(await sending()).toMatchObject({ held: true, heldBySetting: true, by: 'setting', reason: 'HOLD_SENDING' });
    const { status, body } = await release({ restored: true });
    expect([status, body.type]).toEqual([409, 'urn:notebridge:problem:held-by-setting']);
    expect((await hold()).body).toMatchObject({ held: true, heldBySetting: true, by: 'admin', reason: 'CASE-1' });
  });
});

describe('while held', () => {
  it.each(OPERATION_NAMES)('%s leaves only if it reads', async (operation) => {
    expect(factsOf(operation).reads).toBe(READING.includes(operation));
    await hold();
    const kind = await kindOfCall(operation);
    expect([kind === 'held', world.platform.arrivals()]).toEqual(READING.includes(operation) ? [false, 1] : [true, 0]);
    await release();
    expect(await kindOfCall(operation)).not.toBe('held');
  });

  it('nothing else leaves from another process, or under HOLD_SENDING', async () => {
    const others = OPERATION_NAMES.filter((operation) => !READING.includes(operation));
    const another = (await world.startAnother()).app.get(PlatformHttp, { strict: false });
    await hold();
    for (const operation of others)
      expect([operation, await kindOfCall(operation, another)]).toEqual([operation, 'held']);
    await release();
    await world.restart({ HOLD_SENDING: 'true' });
    for (const operation of others) expect([operation, await kindOfCall(operation)]).toEqual([operation, 'held']);
    expect(world.platform.arrivals()).toBe(0);
  });

  it('health names the start, the holder, the reason, and the release', async () => {
    const causes = async () => (await world.call<HealthReport>('GET', '/health/ready')).body.causes;
    expect(await causes()).toEqual([]);
    const since = (await hold()).body.since;
    expect(await causes()).toMatchObject([
      {
        cause: 'Only lookups go to the platform, because admin holds sending (CASE-1).',
        action: 'Release it with npx notebridge release.',
        since,
      },
    ]);
    await world.restart({ HOLD_SENDING: 'true' });
    expect(await causes()).toMatchObject([{ action: 'Remove the setting and restart.' }]);
  });

  it('calls that cannot wait are answered 503 and can be sent again', async () => {
    await hold();
    const recording = { body: Buffer.from('sound'), headers: { 'content-type': 'audio/wav' } };
    for (const [path, options] of [
      ['recordings', recording],
      ['recordings/upload-url', { body: {} }],
      ['compliance/upload-url', { body: {} }],
    ] as const) {
      const { status, body, headers } = await world.call<{ type: string }>('POST', `/v1/${path}`, options);
      expect([path, status, body.type, headers.get('retry-after')]).toEqual([path, 503, HELD, '60']);
    }
    expect(world.platform.arrivals()).toBe(0);
    await release();
    expect((await world.call('POST', '/v1/recordings', recording)).status).toBe(201);
  });
});

describe('the epoch of the feed', () => {
  const cursor = async () => (await world.call<{ cursor: string }>('GET', '/v1/events?after=latest')).body.cursor;
  const resume = async (after: string) => (await world.call('GET', `/v1/events?after=${after}`)).status;

  it('stays after a release', async () => {
    const before = await cursor();
    await hold();
    await release();
    expect(await resume(before)).toBe(200);
  });

  it('rises if the release says that the database was restored, so that earlier cursors are 410', async () => {
    const before = await cursor();
    await hold();
    expect(await resume(before)).toBe(200);
    await release({ restored: true });
    expect(await resume(before)).toBe(410);
    expect(await resume(await cursor())).toBe(200);
    const again = await cursor();
    await hold();
    await release();
    expect(await resume(again)).toBe(200);
  });
});
