import { setImmediate } from 'node:timers/promises';
import { NOW } from './read-all.spec-support.js';
import { readPeople } from './read-people.js';
import type { ImportFormat, ReadEvent } from './row/import-row.js';
import { UnreadableFile } from './row/rejection.js';

/** An endless upload that counts the chunks that were read, and shows whether it was closed. */
function upload(beginning: string, line: string) {
  const taken = { chunks: 0, closed: false };
  async function* chunks(): AsyncGenerator<Buffer> {
    try {
      yield Buffer.from(beginning);
      for (;;) {
        taken.chunks++;
        await setImmediate();
        yield Buffer.from(line.repeat(1000));
      }
    } finally {
      taken.closed = true;
    }
  }
  return { taken, source: chunks() };
}

const PATIENT = '{"resourceType":"Patient","id":"c-1","name":[{"text":"Ann Roe"}]}';
const UPLOADS: [ImportFormat, string, string][] = [
  ['csv', 'externalId,email,firstName,lastName,providers\n', 'c-1,,Ann,Roe,p-1\n'],
  ['ndjson', '', '{"externalId":"c-1","firstName":"Ann","lastName":"Roe"}\n'],
  ['fhir-ndjson', '', `${PATIENT}\n`],
  ['fhir-json', '{"resourceType":"Bundle","entry":[', `{"resource":${PATIENT}},`],
];

describe('reading an upload', () => {
  it.each(UPLOADS)(
    'as %s reads no more than is wanted, and closes it when the reader stops',
    async (format, beginning, line) => {
      const { taken, source } = upload(beginning, line);
      const rows: ReadEvent[] = [];
      for await (const events of readPeople(source, {
        format,
        kind: format.startsWith('fhir') ? 'fhir' : 'clients',
        now: NOW,
      })) {
        rows.push(...events.filter(({ type }) => type === 'row'));
        if (rows.length >= 10) break;
      }
      expect(taken.chunks).toBeLessThan(30);
      expect(taken.closed).toBe(true);
    },
  );

  it('closes it when it is refused', async () => {
    const { taken, source } = upload('externalId,email\n', 'x\n');
    const reading = readPeople(source, { format: 'csv', kind: 'clients', now: NOW })[Symbol.asyncIterator]();
    await expect(reading.next()).rejects.toBeInstanceOf(UnreadableFile);
    expect(taken.closed).toBe(true);
  });

  it('passes on the error of an upload that breaks', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from('externalId,firstName,lastName\n');
      throw new Error('connection reset');
    }
    const reading = readPeople(broken(), { format: 'csv', kind: 'clients', now: NOW })[Symbol.asyncIterator]();
    await expect(reading.next()).rejects.toThrow('connection reset');
  });
});
