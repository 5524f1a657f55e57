import { monitorEventLoopDelay } from 'node:perf_hooks';
import { readPeople } from '../src/imports/parse/read-people.js';
import type { ReadOptions } from '../src/imports/parse/row/import-row.js';
import { UnreadableFile } from '../src/imports/parse/row/rejection.js';
import { type BenchRow, median } from './bench-row.js';

const BYTES = 4_000_000;
const CHUNK = 64 * 1024;
const ROUNDS = 3;
/** No input may cost more than so many times what a usual one of its size does. */
const MOST_RATIO = 10;

type Input = [name: string, beginning: string, repeated: string, format: ReadOptions['format']];

const HEADER = 'externalId,email,firstName,lastName,providers\n';
const USUAL: Input = ['as an EHR writes it', HEADER, 'C-1,c-1@example.org,Cleo,Ruiz,P-1|P-2\n', 'csv'];
const HOSTILE: Input[] = [
  ['quotes that open on one line and close on the next', HEADER, '",x","\n', 'csv'],
  ['a quote on each line', HEADER, '"x\n', 'csv'],
  ['doubled quotes', HEADER, '""x""\n"', 'csv'],
  ['nothing but delimiters', HEADER, ',', 'csv'],
  ['blank lines', HEADER, '\n', 'csv'],
  ['a header without end', '', 'externalId,', 'csv'],
  ['objects that never close', '', '{"a":[', 'ndjson'],
  ['backslashes', '', '"\\\\', 'ndjson'],
  ['a Bundle of brackets', '{"resourceType":"Bundle","entry":[', '[{', 'fhir-json'],
  ['resources without end', '', '{"resourceType":"Patient","id":"1","name":[{"given":["A"', 'fhir-ndjson'],
];

/** What the import readers make of input that is meant to hold them up: bytes a second, and the longest pause of all else. */
export async function benchImportReaders(): Promise<BenchRow[]> {
  await read(USUAL); // compiled, once
  const usual = await rowsOf(USUAL);
  const hostile = [];
  for (const input of HOSTILE) hostile.push(await rowsOf(input));
  const ratio = Math.max(...hostile.map(({ seconds }) => seconds)) / usual.seconds;
  return [
    ...[usual, ...hostile].flatMap(({ rows }) => rows),
    {
      name: 'import reader, the slowest of them as times of the usual file',
      value: ratio,
      unit: '×',
      target: `≤ ${MOST_RATIO}`,
      ok: ratio <= MOST_RATIO,
    },
  ];
}

async function rowsOf(input: Input): Promise<{ seconds: number; rows: BenchRow[] }> {
  const rounds = [];
  for (let round = 0; round < ROUNDS; round++) rounds.push(await read(input));
  const seconds = median(rounds.map((round) => round.seconds));
  const stall = median(rounds.map((round) => round.stallMs));
  return {
    seconds,
    rows: [
      { name: `import reader, ${input[0]}`, value: BYTES / seconds / 1e6, unit: 'MB/s' },
      { name: '… longest wait of everything else', value: stall, unit: 'ms' },
    ],
  };
}

async function read([, beginning, repeated, format]: Input): Promise<{ seconds: number; stallMs: number }> {
  const text = Buffer.from(beginning + repeated.repeat(Math.ceil(BYTES / repeated.length))).subarray(0, BYTES);
  const kind = format.startsWith('fhir') ? 'fhir' : 'clients';
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const begun = performance.now();
  try {
    for await (const _ of readPeople(chunksOf(text), { format, kind, now: new Date() }));
  } catch (error) {
    if (!(error instanceof UnreadableFile)) throw error;
  }
  const seconds = (performance.now() - begun) / 1_000;
  delays.disable();
  return { seconds, stallMs: delays.max / 1e6 };
}

async function* chunksOf(text: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += CHUNK) yield text.subarray(at, at + CHUNK);
}
