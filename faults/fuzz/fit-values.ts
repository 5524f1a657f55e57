import type { SeededRandom } from '../../simulator/seeded-random.js';
import type { KnownValues } from './known-values.js';
import { pick } from './odd-values.js';
import { type OpenApi, resolved, type Schema } from './openapi.js';

/** The first word of every name and email that is sent, and of every clinical text, so that leaks are found. */
export const PERSON_WORD = 'Zeisigwort';
export const CLINICAL_WORD = 'Notizwort';

/** Number of initial providers, and of initial clients. */
export const PEOPLE = 10;

/** Range of people in requests that delete or create: two that exist, and four that do not. */
const SHORT_LIVED = [PEOPLE - 2, PEOPLE + 4] as const;

/** Groups of members; a body accepts exactly one of a group. */
const EITHER_OR = [
  ['recording', 'text'],
  ['noteTemplateIds', 'sessionType'],
  ['client', 'clientPronouns'],
  ['since', 'session'],
] as const;

const TEMPLATES = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];

/** A place in a body that may be changed, with its schema. */
export interface Place {
  readonly holder: Record<string, unknown> | unknown[];
  readonly key: string | number;
  readonly schema: Schema;
}

/** Makes values that fit a schema and the name of the field. */
export class FitValues {
  /** Number of the person that most values of the current request refer to. */
  private favourite = 0;

  constructor(
    private readonly document: OpenApi,
    private readonly known: KnownValues,
  ) {}

  /** Chooses the person of the next request. @param isShortLived true if the request may create or delete people */
  begin(random: SeededRandom, isShortLived: boolean): void {
    const [from, to] = isShortLived ? SHORT_LIVED : [0, PEOPLE];
    this.favourite = from + random.below(to - from);
  }

  /**
   * A value that fits.
   *
   * @param path of the operation, which tells the kind of its ids
   * @param places gets every place below the value
   */
  of(random: SeededRandom, path: string, name: string, schema: Schema, places: Place[] = []): unknown {
    const fit = resolved(schema, this.document);
    if (fit.enum) return pick(random, fit.enum);
    if (fit.type === 'object') return this.object(random, path, fit, places);
    if (fit.type === 'array') {
      const length = Math.max(fit.minItems ?? 0, random.below(4));
      const list: unknown[] = [];
      for (let at = 0; at < length; at++) {
        places.push({ holder: list, key: at, schema: fit.items ?? {} });
        list.push(this.of(random, path, name, fit.items ?? {}, places));
      }
      return [...new Set(list)].length === list.length ? list : list.slice(0, 1);
    }
    // A hold would cause most later requests to be rejected.
    if (fit.type === 'boolean') return name !== 'held' && random.chance(0.5);
    if (fit.type === 'number' || fit.type === 'integer') return (fit.minimum ?? 1) + random.below(5);
    return this.text(random, path, name, fit);
  }

  private object(random: SeededRandom, path: string, schema: Schema, places: Place[]): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(schema.properties ?? {})) {
      if (!schema.required?.includes(name) && random.chance(0.5)) continue;
      places.push({ holder: object, key: name, schema: resolved(member, this.document) });
      object[name] = this.of(random, path, name, member, places);
    }
    for (const [first, second] of EITHER_OR) {
      const both = schema.properties?.[first] && schema.properties[second];
      if (!both || first in object !== second in object) continue;
      delete object[first];
      places.push({ holder: object, key: second, schema: resolved(both, this.document) });
      object[second] = this.of(random, path, second, both, places);
    }
    if (typeof schema.additionalProperties === 'object') object.A = random.uuid();
    return object;
  }

  private text(random: SeededRandom, path: string, name: string, { format }: Schema): string {
    const number = random.chance(0.9) ? this.favourite : random.below(PEOPLE);
    const make = BY_NAME[name];
    if (make) return make(number, path);
    const known = this.known.pick(random, path, ALIASES[name] ?? name);
    if (known !== undefined && random.chance(0.9)) return known;
    if (format === 'uuid') return random.uuid();
    if (format === 'date') return '2026-03-01';
    if (format === 'date-time') return new Date(Date.UTC(2026, 2, 1, number)).toISOString();
    return `${name}-${number}`;
  }
}

/** Names of values in requests that have another name in answers. */
const ALIASES: Record<string, string> = {
  after: 'cursor',
  cursor: 'nextCursor',
  session: 'id',
  url: 'url',
  recordingUrls: 'url',
  keyId: 'id',
  subject: 'id',
  deliveryId: 'id',
};

const BY_NAME: Record<string, (number: number, path: string) => string> = {
  externalId: (number, path) =>
    `${path.startsWith('/v1/providers') || (number % 2 && path.includes('/people')) ? 'p' : 'c'}-${number}`,
  provider: (number) => `p-${number}`,
  providers: (number) => `p-${number}`,
  defaultProvider: (number) => `p-${number}`,
  client: (number) => `c-${number}`,
  email: (number) => `${PERSON_WORD}${number}@clinic.example`,
  firstName: (number) => `${PERSON_WORD}${number}`,
  lastName: (number) => `${PERSON_WORD}${number}`,
  text: (number) => `${CLINICAL_WORD}${number} slept better`,
  externalTreatmentPlan: (number) => `# ${CLINICAL_WORD}${number}`,
  noteTemplateIds: (number) => TEMPLATES[number % TEMPLATES.length] ?? '',
  date: (number) => new Date(Date.UTC(2026, 2, 1, number)).toISOString(),
  partnerAppointmentId: (number) => `visit-${number}`,
  redirectUrl: () => 'https://ehr.example/back',
  contentType: () => 'audio/wav',
  action: () => 'PUT /v1/clients/:externalId',
  name: (number) => `key ${number}`,
};
