import { useAccess } from './use-access.js';

const { world, ask, makeKey } = useAccess();

interface Entry {
  action: string;
  outcome: string;
  requestId: string | null;
}

/** The entries of a key, oldest first. */
async function entriesOf(keyId: string): Promise<Entry[]> {
  const { body } = await ask<{ items: Entry[] }>(`GET /v1/audit?keyId=${keyId}&limit=200`);
  return body.items.reverse();
}

const REFUSED: [cause: string, outcome: string, line: string, body: unknown][] = [
  ['a missing scope', 'forbidden-scope', 'GET /v1/imports', undefined],
  ['an unknown client', 'client-not-found', 'GET /v1/clients/nobody', undefined],
  ['a bad query', 'validation', 'GET /v1/clients?limit=none', undefined],
  ['a bad body', 'validation', 'PUT /v1/clients/C-1', { surname: 1 }],
  ['a body that is too large', 'body-too-large', 'PUT /v1/clients/C-1', { email: 'x'.repeat(1024 ** 2) }],
  ['a body of another type', 'unsupported-media-type', 'PUT /v1/clients/C-1', 'text'],
];

describe('repeated refusals', () => {
  it.each(REFUSED)('for %s leave two entries a minute', async (_, outcome, line, body) => {
    const { id, key } = await makeKey(['people:read', 'people:write']);
    const refused = await Promise.all(Array.from({ length: 15 }, () => ask(line, { key, body })));
    expect(new Set(refused.map(({ problem }) => problem))).toEqual(new Set([outcome]));
    expect(await entriesOf(id)).toMatchObject([{ outcome, requestId: expect.any(String) }]);
    await world.advance('1 min');
    // The end of a minute writes its counts alongside the work that the world waits for.
    await world.eventually('the counts are written', async () => (await entriesOf(id)).length > 1);
    expect((await entriesOf(id)).slice(1)).toMatchObject([{ outcome: `${outcome}, 14 times`, requestId: null }]);
    await ask(line, { key, body });
    expect((await entriesOf(id)).slice(2)).toMatchObject([{ outcome, requestId: expect.any(String) }]);
  });
});
