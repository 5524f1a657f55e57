import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import type { Service } from '../../harness/service.js';
import { until } from '../../harness/until.js';
import type { SimulatedInput } from '../../simulator/sessions/session.js';
import { createSession } from '../../simulator/sessions/session-routes.js';
import { takeStep } from '../../simulator/sessions/session-run.js';
import type { SimulatorState } from '../../simulator/state.js';
import { SCOPES } from '../../src/access/identity/scope.js';
import { CLINICAL_WORD, PEOPLE, PERSON_WORD } from './fit-values.js';

/** A string in the code that may be a slug, or a template of one with a kind of person. */
const WORDS = /['`][a-z]*(?:-?\$\{\w+\}-?|-)*[a-z-]+['`]/g;

/** Every string in the service's code that may be the slug of a problem. */
export function slugsOfCode(): ReadonlySet<string> {
  const words = readdirSync('src', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.spec.ts'))
    .flatMap((file) => readFileSync(path.join('src', file), 'utf8').match(WORDS) ?? [])
    .map((word) => word.slice(1, -1));
  return new Set(words.flatMap((word) => ['client', 'provider'].map((kind) => word.replace(/\$\{\w+\}/, kind))));
}

/** Only audio has a transcript. */
const RECORDING: SimulatedInput = {
  kind: 'recording',
  urls: ['https://files.example/1.wav'],
  content: 'Recording',
};

/** Creates people, and a session of each client on the platform, whose webhooks announce it. */
export async function createPeople(service: Service, state: SimulatorState): Promise<void> {
  for (let n = 0; n < PEOPLE; n++) {
    const names = { firstName: `${PERSON_WORD}${n}`, lastName: PERSON_WORD };
    const mirrored = (path: string, more: object) =>
      until(`${path} is mirrored`, async () => {
        const { body } = await service.call('PUT', path, { body: { ...names, ...more }, wait: 60 });
        return body.platformUserId;
      });
    const provider = await mirrored(`/v1/providers/p-${n}`, { email: `${PERSON_WORD}p${n}@clinic.example` });
    const client = await mirrored(`/v1/clients/c-${n}`, {
      email: `${PERSON_WORD}c${n}@clinic.example`,
      providers: [`p-${n}`],
    });
    const session = createSession(state, {
      providerUserId: provider,
      clientUserIds: [client],
      noteTemplateIds: ['11111111-1111-4111-8111-111111111111'],
      input: n === 0 ? RECORDING : { kind: 'text', text: `${CLINICAL_WORD} of the week` },
      date: '2026-03-01T09:00:00.000Z',
      partnerAppointmentId: `visit-${n}`,
    });
    while (session.nextStep) takeStep(state, session);
  }
}

/** The API keys of the requests: one for each scope, and `all` with all scopes. */
interface FuzzKeys {
  readonly keys: ReadonlyMap<string, string>;
  /** Ids of the keys, which no request may revoke. */
  readonly ids: ReadonlySet<string>;
}

/** Creates a key for each scope. */
export async function makeKeys(service: Service, adminKey: string): Promise<FuzzKeys> {
  const keys = new Map([['all', adminKey]]);
  const ids = new Set<string>();
  for (const scope of SCOPES) {
    const { body } = await service.call<{ id: string; key: string }>('POST', '/v1/api-keys', {
      body: { name: scope, scopes: [scope] },
    });
    keys.set(scope, body.key);
    ids.add(body.id);
  }
  return { keys, ids };
}
