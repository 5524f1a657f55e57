import { EVENT_TYPES } from '../../src/platform/contract/wire-types.js';
import { signWebhook } from '../../src/webhooks/receive/webhook-signature.js';
import type { Draft } from './draft.js';
import type { Place } from './fit-values.js';
import { importFile, multipart } from './form-bodies.js';
import type { KnownValues } from './known-values.js';
import { bodyText, ODD_BODIES, ODD_NAMES, oddValue, pick } from './odd-values.js';
import type { Operation, Schema } from './openapi.js';

/** Makes the body of a request, and sets its Content-Type. */
export function bodyOf(draft: Draft, { bodies, path }: Operation): Buffer | undefined {
  const { random, headers } = draft;
  if (bodies.length === 0) {
    if (!draft.odd('a body', 0.04)) return undefined;
    headers['content-type'] = 'application/json';
    return pick(random, ODD_BODIES);
  }
  if (draft.odd('no body', 0.02)) return undefined;
  const { type, schema } = pick(random, bodies);
  if (draft.odd('broken body', 0.06)) {
    headers['content-type'] = type.replace('*', 'wav');
    return pick(random, ODD_BODIES);
  }
  if (type === 'multipart/form-data') return multipart(draft, path);
  headers['content-type'] = type.replace('*', 'wav');
  if (type === 'application/json') return Buffer.from(bodyText(jsonOf(draft, path, schema), random));
  return /\*|octet/.test(type) ? Buffer.from(random.hex(200)) : importFile(draft, type);
}

/** JSON that fits the schema, mostly with a value changed or removed. */
function jsonOf(draft: Draft, path: string, schema: Schema): unknown {
  const { random, fit } = draft;
  const places: Place[] = [];
  const body = fit.of(random, path, '', schema, places);
  if (places.length === 0) return draft.odd('value', 0.3) ? oddValue(random) : body;
  for (const place of draft.odd('values', 0.08) ? places : draft.odd('value', 0.35) ? [pick(random, places)] : []) {
    const holder = place.holder as Record<string | number, unknown>;
    const { maxLength, maximum, minimum } = place.schema;
    const draw = random.fraction();
    if (draw < 0.1) delete holder[place.key];
    else if (draw < 0.25 && maxLength) holder[place.key] = 'x'.repeat(maxLength + random.below(2));
    else if (draw < 0.25 && maximum !== undefined) holder[place.key] = maximum + random.below(2);
    else if (draw < 0.3 && minimum !== undefined) holder[place.key] = minimum - random.below(2);
    else holder[place.key] = oddValue(random);
  }
  if (draft.odd('member', 0.05)) {
    Object.defineProperty(body as object, pick(random, ODD_NAMES), { value: oddValue(random), enumerable: true });
  }
  return body;
}

const EVENTS = [...EVENT_TYPES, 'SOMETHING_NEW', '__proto__'];

/** An event of the platform, mostly with a valid signature. */
export function eventOf(draft: Draft, known: KnownValues, webhookSecret: string): Buffer {
  const { random, headers } = draft;
  const id = known.pick(random, '/v1/sessions', 'sessionId') ?? random.uuid();
  const event: Record<string, unknown> = {
    eventType: pick(random, EVENTS),
    sessionId: id,
    providerUserId: known.pick(random, '/v1/providers', 'platformUserId') ?? random.uuid(),
    partnerAppointmentId: `visit-${random.below(9)}`,
    aiNotesEnabled: random.chance(0.5),
    payload: {
      sessionId: id,
      processingId: random.uuid(),
      jobId: random.uuid(),
      userId: random.uuid(),
      role: 'Client',
      externalUserId: 'c-1',
    },
  };
  if (draft.odd('event', 0.4)) event[pick(random, Object.keys(event))] = oddValue(random);
  const body = draft.odd('broken event', 0.1) ? pick(random, ODD_BODIES) : Buffer.from(bodyText(event, random));
  const timestamp = draft.odd('timestamp', 0.05)
    ? pick(random, ['', '-1', '1e99', '9'.repeat(40), 'NaN', '1:2'])
    : String(Date.now());
  headers['content-type'] = 'application/json';
  headers['x-service-timestamp'] = timestamp;
  headers['x-service-signature'] = draft.odd('signature', 0.1)
    ? pick(random, ['', 'x', '0'.repeat(64), '\u00e9'])
    : signWebhook(webhookSecret, timestamp, body);
  return body;
}
