import type { SeededRandom } from '../../simulator/seeded-random.js';

/** Maximum stored values of one kind; later ones replace the first. */
const MAX_VALUES = 40;

/** Names of values in answers that other requests may use. */
const NAMED_VALUES = new Set([
  'id',
  'externalId',
  'documentId',
  'sessionId',
  'processingId',
  'jobId',
  'upToId',
  'platformUserId',
  'providerUserId',
  'nextCursor',
  'cursor',
  'url',
]);

/** Values from previous answers, so that requests can name existing things. */
export class KnownValues {
  private readonly values = new Map<string, string[]>();

  /** @param spared ids that no request may name, such as those of the API keys in use */
  constructor(private readonly spared: ReadonlySet<string>) {}

  /** Stores the values of an answer by their name and by the path that they were read from. */
  learn(path: string, answer: unknown): void {
    if (Array.isArray(answer)) {
      for (const item of answer.slice(0, 20)) this.learn(path, item);
      return;
    }
    if (typeof answer !== 'object' || answer === null) return;
    for (const [name, value] of Object.entries(answer)) {
      if (typeof value === 'string' && NAMED_VALUES.has(name)) this.add(path, name, value);
      else this.learn(path, value);
    }
  }

  /** Stores one value of a path under a name. */
  add(path: string, name: string, value: string): void {
    if (this.spared.has(value)) return;
    for (const key of [`${collectionOf(path)} ${name}`, name]) {
      const kept = this.values.get(key) ?? [];
      if (!kept.includes(value)) this.values.set(key, [...kept.slice(1 - MAX_VALUES), value]);
    }
  }

  /** A value of that name, if possible of that path; undefined if there is none. */
  pick(random: SeededRandom, path: string, name: string): string | undefined {
    const near = this.values.get(`${collectionOf(path)} ${name}`) ?? [];
    const kept = near.length > 0 ? near : (this.values.get(name) ?? []);
    return kept[random.below(Math.max(1, kept.length))];
  }
}

/** The list that a path belongs to: `/v1/imports` for `/v1/imports/{id}/rows`. */
const collectionOf = (path: string): string => path.split('/').slice(0, 3).join('/');
