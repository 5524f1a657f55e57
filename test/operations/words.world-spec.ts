import { SESSION_STATES } from '../../src/platform/contract/wire-types.js';
import { openApiDocument } from '../../src/setup.js';
import type { Word } from '../../src/words/word.js';
import { WORDS } from '../../src/words/words.js';
import { useWorld } from '../world/use-world.js';

const world = useWorld();

test('every key reads all words, and no one without a key', async () => {
  const made = await world.call<{ key: string }>('POST', '/v1/api-keys', {
    body: { name: 'reader', scopes: ['events:read'] },
  });
  const { status, body } = await world.call<typeof WORDS>('GET', '/v1/words', { key: made.body.key });
  expect([status, body]).toEqual([200, WORDS]);
  expect((await fetch(`${world.url}/v1/words`)).status).toBe(401);
});

/** Members whose values people see as words. Health's `ok` of a live process is its only value. */
const SHOWN = new Set(['state', 'status', 'outcome', 'planned', 'fault', 'pausedReason', 'etaUnknown', 'review']);
/** Vocabularies whose codes the description leaves open. */
const OPEN = ['personCode', 'rowCode', 'auditAction'];

/** The values of each enum of the description, by the name of its member or parameter. */
function enums(node: unknown, name = ''): [name: string, values: string[]][] {
  if (typeof node !== 'object' || node === null) return [];
  const { enum: values, ...rest } = node as { enum?: unknown; name?: unknown };
  const own: [string, string[]][] = Array.isArray(values) ? [[name, values.filter((value) => value !== null)]] : [];
  return [
    ...own,
    ...Object.entries(rest).flatMap(([key, value]) =>
      enums(value, ['schema', 'items'].includes(key) ? String(rest.name ?? name) : key),
    ),
  ];
}

const vocabularies = Object.entries<Record<string, Word>>(WORDS);

test('every state and outcome of the API has words', () => {
  const shown = enums(openApiDocument(world.app)).filter(([name]) => SHOWN.has(name));
  expect(shown.length).toBeGreaterThan(10);
  const wordless = shown.filter(([, values]) =>
    vocabularies.every(([, words]) => values.some((value) => words[value] === undefined)),
  );
  expect(wordless).toEqual([]);
  expect(SESSION_STATES.every((state) => state in WORDS.sessionState)).toBe(true);
});

test('no vocabulary has words for what the API never answers', () => {
  const described = enums(openApiDocument(world.app)).map(([, values]) => values.sort().join());
  const unused = vocabularies.filter(
    ([name, words]) => !OPEN.includes(name) && !described.includes(Object.keys(words).sort().join()),
  );
  expect(unused.map(([name]) => name)).toEqual([]);
});
