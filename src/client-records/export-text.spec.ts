import { exportText, type Section } from './export-text.js';

async function* each(...items: object[]): AsyncGenerator<object> {
  yield* items;
}

const sections = (): Section[] => [
  { name: 'client', isList: false, items: each({ externalId: 'c-1' }) },
  { name: 'calls', isList: true, items: each({ id: '1' }, { id: '2' }) },
  { name: 'events', isList: true, items: each() },
];

async function textOf(parts: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const part of parts) text += part;
  return text;
}

test('an export is one JSON object of all sections that ends with complete', async () => {
  expect(JSON.parse(await textOf(exportText(sections())))).toEqual({
    client: { externalId: 'c-1' },
    calls: [{ id: '1' }, { id: '2' }],
    events: [],
    complete: true,
  });
});

test('an export is an invalid document if a section fails', async () => {
  const broken = { name: 'events', isList: true, items: failing() };
  const read: string[] = [];
  const reading = (async () => {
    for await (const part of exportText([...sections(), broken])) read.push(part);
  })();
  await expect(reading).rejects.toThrow('unavailable');
  expect(() => JSON.parse(read.join(''))).toThrow(SyntaxError);
});

async function* failing(): AsyncGenerator<object> {
  yield { id: '1' };
  throw new Error('unavailable');
}
