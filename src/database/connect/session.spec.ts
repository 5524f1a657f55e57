import type pg from 'pg';
import { inSchema, schemaOf, sessionConfig } from './session.js';

/** The settings that a connection to a URL gets. */
async function settingsFor(url: string, more = {}): Promise<Record<string, string>> {
  const sent: string[] = [];
  const client = { query: async ({ values }: { values: string[] }) => sent.push(...values) };
  await sessionConfig(url, more).onConnect(client as unknown as pg.ClientBase);
  return JSON.parse(sent.join('')) as Record<string, string>;
}

const URL_WITHOUT_OPTIONS = 'postgresql://u:p@db.example/n?sslmode=verify-full';

test.each(['notebridge', 'My Schema', 'a"b', 'back\\slash'])('a URL in the schema %j keeps it', async (schema) => {
  const url = inSchema(URL_WITHOUT_OPTIONS, schema);
  expect(schemaOf(url)).toBe(schema);
  expect((await settingsFor(url)).search_path).toBe(`"${schema.replaceAll('"', '""')}"`);
});

test('the schema is public unless the URL names another', () => {
  expect(schemaOf(URL_WITHOUT_OPTIONS)).toBe('public');
  expect(schemaOf(`${URL_WITHOUT_OPTIONS}&options=-c search_path=one,two`)).toBe('one');
});

test('options in a URL are merged with the settings, and are not sent by the client itself', async () => {
  const url = `${URL_WITHOUT_OPTIONS}&options=${encodeURIComponent('-c jit=on --work-mem=2MB -capp.note=two\\ words')}`;
  expect(await settingsFor(url, { search_path: 'bullmq' })).toMatchObject({
    default_transaction_isolation: 'read committed',
    jit: 'on',
    work_mem: '2MB',
    'app.note': 'two words',
    search_path: 'bullmq',
  });
  expect(sessionConfig(url).connectionString).not.toContain('options');
});
