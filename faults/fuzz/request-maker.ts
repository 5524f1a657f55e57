import { SeededRandom } from '../../simulator/seeded-random.js';
import { Draft } from './draft.js';
import { FitValues } from './fit-values.js';
import { KnownValues } from './known-values.js';
import { HEADERS, MEDIA, METHODS } from './odd-headers.js';
import { pick } from './odd-values.js';
import { type OpenApi, type Operation, operationsOf } from './openapi.js';
import { bodyOf, eventOf } from './request-body.js';
import { urlOf } from './request-url.js';

/** One request, and its odd parts. */
export interface FuzzRequest {
  readonly number: number;
  readonly operation: Operation;
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string | string[]>;
  readonly body: Buffer | undefined;
  /** The API key: a scope, `all`, or the way in which it is missing or invalid. */
  readonly key: string;
  readonly oddities: readonly string[];
}

/** The receiver of the platform's events, which has no schema. */
const WEBHOOK: Operation = { method: 'POST', path: '/webhooks/platform', parameters: [], bodies: [] };

/** Makes requests. The same seed and number make the same one, except for ids that the service chose. */
export class RequestMaker {
  readonly known: KnownValues;
  private readonly fit: FitValues;
  readonly operations: readonly Operation[];

  /**
   * @param keys by their name
   * @param spared ids that no request may name
   * @param webhookSecret signs webhooks
   */
  constructor(
    document: OpenApi,
    private readonly seed: number,
    private readonly keys: ReadonlyMap<string, string>,
    private readonly webhookSecret: string,
    spared: ReadonlySet<string>,
  ) {
    this.known = new KnownValues(spared);
    this.fit = new FitValues(document, this.known);
    this.operations = [...operationsOf(document), WEBHOOK];
  }

  /** The request with this number. */
  make(number: number): FuzzRequest {
    const random = new SeededRandom(Math.imul(this.seed + number, 0x9e3779b1));
    const operation = this.operations[number % this.operations.length] as Operation;
    this.fit.begin(random, operation.method === 'DELETE');
    const draft = new Draft(random, this.fit);
    const { headers, oddities } = draft;
    const url = urlOf(draft, operation);
    const body = operation === WEBHOOK ? eventOf(draft, this.known, this.webhookSecret) : bodyOf(draft, operation);
    if (body && draft.odd('media type', 0.03)) headers['content-type'] = pick(random, MEDIA);
    for (let left = random.below(3); left > 0; left--) {
      const [name, values] = pick(random, HEADERS);
      if (draft.odd(name, 0.4)) headers[name] = pick(random, values);
    }
    if (random.chance(0.005)) headers.prefer = 'wait=1';
    const key = this.key(draft);
    const method = draft.odd('method', 0.02) ? pick(random, METHODS) : operation.method;
    return { number, operation, method, url, headers, body, key, oddities };
  }

  private key({ random, headers }: Draft): string {
    const draw = random.fraction();
    if (draw < 0.03) return 'none';
    if (draw < 0.05) {
      headers.authorization = pick(random, [
        'Bearer',
        'Bearer ',
        'Basic YTpi',
        'Bearer \u00e9',
        'bearer x y',
        'Bearer __proto__',
        `Bearer ${'x'.repeat(5_000)}`,
      ]);
      return 'malformed';
    }
    const key = draw < 0.25 ? pick(random, [...this.keys.keys()]) : 'all';
    headers.authorization = `Bearer ${this.keys.get(key)}`;
    return key;
  }
}
