import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { matchingSecret, signWebhook } from './webhook-signature.js';

const MUTATIONS = 10 * propertyRuns().numRuns;
const bytes = fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array));
const digits = fc.nat().map(String);

describe('webhook signature', () => {
  it('is the hex HMAC-SHA-256 of v0, the timestamp and the raw body', () => {
    // printf 'v0:1700000000000:{"a":1}' | openssl dgst -sha256 -hmac whsec
    expect(signWebhook('whsec', '1700000000000', Buffer.from('{"a":1}'))).toBe(
      '0a666737d6a627e78049cb5bc8f208a8a5793ce43a50a165438120fa79a122f4',
    );
  });

  it('finds the secret among those of a rotation', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 }),
        digits,
        bytes,
        fc.nat(),
        (secrets, timestamp, body, pick) => {
          const index = pick % secrets.length;
          const signature = signWebhook(secrets[index] ?? '', timestamp, body);
          expect(matchingSecret(secrets, timestamp, body, signature)).toBe(index);
        },
      ),
      propertyRuns(),
    );
  });

  it('compares the digits of a signature without their case', () => {
    const body = Buffer.from('{}');
    const genuine = signWebhook('a', '1', body);
    const mixed = genuine.replace(/[a-f]/, (digit) => digit.toUpperCase());
    for (const signature of [genuine.toUpperCase(), mixed]) expect(matchingSecret(['a'], '1', body, signature)).toBe(0);
  });

  it('accepts no other form of a genuine signature', () => {
    const body = Buffer.from('{}');
    const genuine = signWebhook('a', '1', body);
    const others = [`${genuine} `, `${genuine}\n`, genuine.slice(1), `${genuine}, ${genuine}`, ''];
    for (const signature of others) expect(matchingSecret(['a'], '1', body, signature)).toBeUndefined();
  });

  it('does not let bytes move between timestamp and body', () => {
    const genuine = signWebhook('a', '12', Buffer.from('3:{}'));
    expect(matchingSecret(['a'], '12', Buffer.from('3:{}'), genuine)).toBe(0);
    expect(matchingSecret(['a'], '12:3', Buffer.from('{}'), genuine)).toBeUndefined();
  });

  it(`accepts none of ${MUTATIONS} mutations of a genuine delivery`, () => {
    const secrets = ['current-secret', 'retiring-secret'];
    const body = Buffer.from('{"eventType":"SESSION_CREATED","sessionId":"s"}');
    const timestamp = '1700000000000';
    const genuine = signWebhook('current-secret', timestamp, body);
    let state = propertyRuns().seed;
    const next = (below: number) => {
      // Park and Miller's generator: quick, and replayable from the seed.
      state = (state * 48_271) % 2_147_483_647;
      return state % below;
    };
    const otherDigit = (text: string, alphabet: string) => {
      const at = next(text.length);
      const choices = [...alphabet].filter((letter) => letter !== text[at]);
      return text.slice(0, at) + choices[next(choices.length)] + text.slice(at + 1);
    };
    let accepted = 0;
    for (let run = 0; run < MUTATIONS; run += 1) {
      const changed = Buffer.from(body);
      const place = next(changed.length);
      changed[place] = (changed[place] ?? 0) ^ (1 + next(255));
      const attempts = [
        () => matchingSecret(secrets, timestamp, body, otherDigit(genuine, '0123456789abcdef')),
        () => matchingSecret(secrets, otherDigit(timestamp, '0123456789:. '), body, genuine),
        () => matchingSecret(secrets, timestamp, changed, genuine),
      ];
      if (attempts[run % attempts.length]?.() !== undefined) accepted += 1;
    }
    expect(accepted).toBe(0);
  });
});
