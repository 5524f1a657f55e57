import type { SeededRandom } from '../../simulator/seeded-random.js';

/** Values of one kind that are kept; later ones take the place of the first. */
const MOST = 40;

/** Names under which one answer shows what other requests may name. */
const TELLING = new Set([
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

/** What the service has answered so far, so that requests name things that there are. */
export class KnownValues {
  private readonly values = new Map<string, string[]>();

  /** @param spared ids that no request may name, such as those of the keys that requests bear */
  constructor(private readonly spared: ReadonlySet<string>) {}

  /** Keeps what an answer shows, by its name and by the list or thing that it was read from. */
  learn(path: string, answer: unknown): void {
    if (Array.isArray(answer)) {
      for (const item of answer.slice(0, 20)) this.learn(path, item);
      return;
    }
    if (typeof answer !== 'object' || answer === null) return;
    for (const [name, value] of Object.entries(answer)) {
      if (typeof value === 'string' && TELLING.has(name)) this.add(path, name, value);
      else this.learn(path, value);
    }
  }

  /** Keeps one value of a path under a name. */
  add(path: string, name: string, value: string): void {
    if (this.spared.has(value)) return;
    for (const key of [`${collectionOf(path)} ${name}`, name]) {
      const kept = this.values.get(key) ?? [];
      if (!kept.includes(value)) this.values.set(key, [...kept.slice(1 - MOST), value]);
    }
  }

  /** A value of that name, best of that path; undefined while there is none. */
  pick(random: SeededRandom, path: string, name: string): string | undefined {
    const near = this.values.get(`${collectionOf(path)} ${name}`) ?? [];
    const kept = near.length > 0 ? near : (this.values.get(name) ?? []);
    return kept[random.below(Math.max(1, kept.length))];
  }
}

/** `/v1/imports/{id}/rows` is of `/v1/imports`. */
const collectionOf = (path: string): string => path.split('/').slice(0, 3).join('/');
