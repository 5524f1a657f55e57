import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { propertyRuns } from '../../config/property-runs.spec-support.js';
import { PAUSE_EVERY, WorkMeter } from './csv/csv-records.js';
import { inChunks, NOW } from './read-all.spec-support.js';
import { EVENT_COST, readPeople } from './read-people.js';
import type { ReadOptions } from './row/import-row.js';
import { UnreadableFile } from './row/rejection.js';

type Options = Omit<ReadOptions, 'now'>;

/** Maximum reads of each character, and the fixed cost of a file. */
const TIMES = 24;
const BASE = 1024 * 1024;

const KINDS: { beginning: string; options: Options }[] = [
  { beginning: 'externalId,email,firstName,lastName,providers\n', options: { format: 'csv', kind: 'clients' } },
  {
    beginning: 'kind;externalId;email;firstName;lastName;providers;platformUserId;file;line;code;hint\n',
    options: { format: 'csv', kind: 'clients' },
  },
  { beginning: '', options: { format: 'csv', kind: 'clients' } },
  {
    beginning: 'externalId,MRN,First Name,first_name,Status,Deceased\n',
    options: { format: 'csv', kind: 'clients', whole: true },
  },
  { beginning: '', options: { format: 'ndjson', kind: 'clients' } },
  { beginning: '', options: { format: 'fhir-ndjson', kind: 'fhir' } },
  { beginning: '{"resourceType":"Bundle","entry":[', options: { format: 'fhir-json', kind: 'fhir' } },
];

/** Texts that are expensive for a reader that goes back. */
const TOKENS = [
  '",x","\n',
  '"',
  '""',
  '"\n',
  ',',
  ';',
  '\t',
  '|',
  '\n',
  '\r',
  'x',
  ' ',
  '",',
  ',"',
  '{',
  '}',
  '[',
  ']',
  '\\',
];
const PARTS = ['{"externalId":"c-1"}\n', '{"resourceType":"Patient","id":"1"}', ',"a":', 'c-1,,Ann,Roe,p-1\n'];

const unit = fc
  .array(fc.constantFrom(...TOKENS, ...TOKENS, ...PARTS), { minLength: 1, maxLength: 4 })
  .map((t) => t.join(''));
const hostile = fc.record({
  units: fc.array(unit, { minLength: 1, maxLength: 3 }),
  length: fc.constantFrom(1_000, 70_000, 200_000),
  kind: fc.constantFrom(...KINDS),
  row: fc.constantFrom(500, 20_000, 1024 * 1024),
  chunk: fc.constantFrom(777, 64 * 1024, 10_000_000),
});

class MeasuredMeter extends WorkMeter {
  total = 0;
  longest = 0;
  private current = 0;

  override spend(characters: number): void {
    this.total += characters;
    this.current += characters;
    super.spend(characters);
  }

  override async pause(): Promise<void> {
    this.longest = Math.max(this.longest, this.current);
    this.current = 0;
    await super.pause();
  }
}

/** @returns the characters that were read, without the events, and the longest stretch without a pause */
async function workOf(text: string, options: Options, chunk: number) {
  const meter = new MeasuredMeter();
  let events = 0;
  try {
    const reading = readPeople(inChunks(Buffer.from(text), chunk), { ...options, now: NOW }, meter);
    for await (const batch of reading) events += batch.length;
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
  }
  return { characters: meter.total - events * EVENT_COST, longest: meter.longest };
}

describe('what reading costs', () => {
  it('is for every input as much as it has characters, a few times at most, with pauses all along', async () => {
    const property = fc.asyncProperty(hostile, async ({ units, length, kind, row, chunk }) => {
      const each = Math.ceil(length / units.length);
      const body = units.map((one) => one.repeat(Math.ceil(each / one.length))).join('');
      const text = kind.beginning + body;
      const { characters, longest } = await workOf(text, { ...kind.options, limits: { row, cell: 1_000 } }, chunk);
      expect(characters).toBeLessThan(TIMES * text.length + BASE);
      expect(longest).toBeLessThan(PAUSE_EVERY + TIMES * (row + 64 * 1024));
    });
    await fc.assert(property, propertyRuns(0.06));
  });

  it.each([
    ['quotes that open on one line and close on the next', '",x","\n'],
    ['a quote on each line', '"x\n'],
    ['doubled quotes', '""x""\n"'],
    ['nothing but delimiters', ','],
    ['blank lines', '\n'],
  ])('of %s doubles when the file does', async (_, pattern) => {
    const file = (size: number) => KINDS[0]?.beginning + pattern.repeat(Math.ceil(size / pattern.length));
    const cost = async (size: number) =>
      (await workOf(file(size), { format: 'csv', kind: 'clients' }, 64 * 1024)).characters;
    const [small, large] = [await cost(300_000), await cost(600_000)];
    expect(large).toBeLessThan(2.5 * small);
  });

  it('of a header without end is bounded', async () => {
    const header = Array.from({ length: 100_000 }, (_, n) => `c${n}`).join(',');
    const { characters } = await workOf(`${header}\n`, { format: 'csv', kind: 'clients' }, 64 * 1024);
    expect(characters).toBeLessThan(TIMES * header.length + BASE);
  });
});
