import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { propertyRuns } from '../src/config/property-runs.spec-support.js';
import { NotebridgeError } from './notebridge-error.js';
import { verifyWebhook, type WebhookHeaders } from './verify-webhook.js';

const NOW = new Date('2026-11-27T10:00:00Z');
const MINUTE_MS = 60_000;
const newSecret = () => `whsec_${randomBytes(24).toString('base64')}`;
const secret = newSecret();
const event = {
  type: 'session.notes-ready',
  timestamp: '2026-11-27T09:59:59.000Z',
  data: { cursor: '1-7', subject: 'sessions/3f', notesRevision: 1 },
};
const BODY = JSON.stringify(event);

/** The headers of a push, signed by the reference library. */
function sign(body: string, { at = NOW, by = secret } = {}): Record<string, string> {
  return {
    'webhook-id': 'msg-1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': new Webhook(by).sign('msg-1', at, body),
  };
}

const verify = (
  headers: WebhookHeaders,
  body: Parameters<typeof verifyWebhook>[1] = BODY,
  secrets: string | string[] = secret,
) => verifyWebhook(headers, body, secrets, { now: NOW });

const typeOf = (verified: Promise<unknown>) =>
  verified.then(
    () => 'verified',
    (error: unknown) => (error instanceof NotebridgeError ? error.type : String(error)),
  );

describe('a push that standardwebhooks has signed', () => {
  it('gives its event', async () => {
    expect(await verify(sign(BODY))).toEqual(event);
  });

  it.each<[string, (headers: Record<string, string>) => WebhookHeaders]>([
    ['a Headers', (headers) => new Headers(headers)],
    [
      'an object in upper case',
      (headers) => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value])),
    ],
    ['a Map', (headers) => new Map(Object.entries(headers))],
    ['an array of pairs', (headers) => Object.entries(headers)],
    ['a Headers of another library', (headers) => ({ [Symbol.iterator]: () => Object.entries(headers).values() })],
    ['headers of Node', (headers) => ({ host: undefined, 'set-cookie': ['a=1', 'b=2'], ...headers })],
  ])('is verified with %s', async (_, form) => {
    expect(await verify(form(sign(BODY)))).toEqual(event);
  });

  it('is verified as text or bytes, for every body', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ stringUnit: 'binary' }), async (body) => {
        const parsed: unknown = JSON.parse(body);
        expect(await verify(sign(body), body)).toEqual(parsed);
        expect(await verify(sign(body), new TextEncoder().encode(body))).toEqual(parsed);
      }),
      propertyRuns(0.1),
    );
  });

  it('is verified as an ArrayBuffer or a view of a part of one', async () => {
    const { buffer } = Uint8Array.from(new TextEncoder().encode(BODY));
    expect(await verify(sign(BODY), buffer)).toEqual(event);
    const padded = Uint8Array.from([0, ...new TextEncoder().encode(BODY), 0]).buffer;
    expect(await verify(sign(BODY), new DataView(padded, 1, buffer.byteLength))).toEqual(event);
  });

  it.each([undefined, null])('is rejected with %j as its headers', async (headers) => {
    expect(await typeOf(verify(headers as unknown as WebhookHeaders))).toBe('missing-header');
  });

  it('is rejected if one byte differs', async () => {
    const bytes = new TextEncoder().encode(BODY);
    const headers = sign(BODY);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const changed = bytes.map((byte, index) => (index === at ? byte ^ change : byte));
        expect(await typeOf(verify(headers, changed))).toBe('bad-signature');
      }),
      propertyRuns(0.2),
    );
  });

  it.each(['webhook-id', 'webhook-timestamp'])('is rejected if %s differs', async (name) => {
    const headers = sign(BODY);
    expect(await typeOf(verify({ ...headers, [name]: `${headers[name]?.slice(0, -1)}9` }))).toBe('bad-signature');
  });

  it('is rejected with another secret, and verified if one of several fits', async () => {
    const headers = sign(BODY);
    expect(await typeOf(verify(headers, BODY, newSecret()))).toBe('bad-signature');
    expect(await typeOf(verify(headers, BODY, [newSecret(), secret]))).toBe('verified');
  });

  it('is verified if one of several signatures fits', async () => {
    const headers = sign(BODY);
    const others = `v1a,abc ${sign(BODY, { by: newSecret() })['webhook-signature']} v1,?`;
    const all = `${others} ${headers['webhook-signature']}`;
    expect(await typeOf(verify({ ...headers, 'webhook-signature': all }))).toBe('verified');
    expect(await typeOf(verify({ ...headers, 'webhook-signature': others }))).toBe('bad-signature');
  });

  it.each([
    [-5 * MINUTE_MS, 'verified'],
    [-5 * MINUTE_MS - 1_000, 'old-timestamp'],
    [5 * MINUTE_MS, 'verified'],
    [5 * MINUTE_MS + 1_000, 'future-timestamp'],
  ])('with a timestamp of %d ms from now: %s', async (ms, outcome) => {
    const headers = sign(BODY, { at: new Date(NOW.getTime() + ms) });
    expect(await typeOf(verify(headers))).toBe(outcome);
    expect(await typeOf(verifyWebhook(headers, BODY, secret, { now: NOW, toleranceSeconds: 600 }))).toBe('verified');
  });

  it.each(['soon', '', '1e9', '-1'])('is rejected with the timestamp "%s"', async (timestamp) => {
    const headers = { ...sign(BODY), 'webhook-timestamp': timestamp };
    expect(await typeOf(verify(headers))).toMatch(/^(missing-header|old-timestamp)$/);
  });

  it.each(['webhook-id', 'webhook-timestamp', 'webhook-signature'])('is rejected without %s', async (name) => {
    expect(await typeOf(verify({ ...sign(BODY), [name]: undefined }))).toBe('missing-header');
  });

  it.each([event, undefined, null, [1, 2]])('is rejected if a JSON parser has read it: %j', async (parsed) => {
    const verified = verifyWebhook(sign(BODY), parsed as unknown as string, secret, { now: NOW });
    await expect(verified).rejects.toMatchObject({
      type: 'bad-body',
      message: expect.stringContaining('express.raw()'),
    });
  });

  it('is rejected if it is not JSON', async () => {
    expect(await typeOf(verify(sign('hello'), 'hello'))).toBe('bad-body');
  });
});

test.each(['', 'whsec_', 'whsec_%%%', undefined, null, [undefined], []])('the secret %j is rejected', async (wrong) => {
  expect(await typeOf(verifyWebhook(sign(BODY), BODY, wrong as string, { now: NOW }))).toBe('bad-secret');
});

test('a secret may be given without its prefix', async () => {
  expect(await verify(sign(BODY), BODY, secret.replace('whsec_', ''))).toEqual(event);
});

test('standardwebhooks rejects the same pushes', async () => {
  const theirs = new Webhook(secret);
  const now = new Date();
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: -700, max: 700 }).filter((seconds) => Math.abs(Math.abs(seconds) - 300) > 30),
      fc.constantFrom(secret, newSecret()),
      fc.constantFrom(BODY, `${BODY} `, '{}'),
      async (seconds, by, body) => {
        const headers = sign(BODY, { at: new Date(now.getTime() + seconds * 1_000), by });
        const isTaken = () => {
          try {
            theirs.verify(body, headers);
            return true;
          } catch (error) {
            expect(error).toBeInstanceOf(WebhookVerificationError);
            return false;
          }
        };
        const outcome = await typeOf(verifyWebhook(headers, body, secret, { now }));
        expect([outcome === 'verified', outcome]).toEqual([isTaken(), outcome]);
      },
    ),
    propertyRuns(0.2),
  );
});
