import { Readable } from 'node:stream';
import { looksLikePdf, PDF_LIMIT_BYTES, readComplianceForm } from './pdf-form.js';

type FormPart = Parameters<typeof readComplianceForm>[0] extends AsyncIterable<infer Part> ? Part : never;

const pdf = (size = 20) => Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(Math.max(0, size - 9), ' ')]);
const file = (fieldname: string, content: Buffer | Readable = pdf()): FormPart => {
  const stream = Buffer.isBuffer(content) ? Readable.from([content]) : content;
  return { type: 'file', fieldname, file: stream } as unknown as FormPart;
};
const field = (fieldname: string, value: string) => ({ type: 'field', fieldname, value }) as unknown as FormPart;

async function* stream(parts: FormPart[]) {
  yield* parts;
}
const read = (parts: FormPart[], sizes: number[] = []) =>
  readComplianceForm(stream(parts), async ({ size }) => `https://store.example/${sizes.push(size)}`);

it('uploads files one by one, and gives each the name of its part or its position as id', async () => {
  const sizes: number[] = [];
  const form = await read([file('visit-17', pdf(30)), file('files'), file('files', pdf(40)), file('file')], sizes);
  expect(form.files).toEqual([
    { id: 'visit-17', url: 'https://store.example/1' },
    { id: 'file-2', url: 'https://store.example/2' },
    { id: 'file-3', url: 'https://store.example/3' },
    { id: 'file-4', url: 'https://store.example/4' },
  ]);
  expect(sizes).toEqual([30, 20, 40, 20]);
});

it('accepts repeated and comma-separated lists, before and after the files', async () => {
  const form = await read([field('criteria', 'plan, attendees'), file('files'), field('criteria', 'service_modality')]);
  expect(form.criteria).toEqual(['plan', 'attendees', 'service_modality']);
  expect(form.criteriaGroups).toBeUndefined();
});

it('rejects a file that is not a PDF before reading it completely or uploading it', async () => {
  let pulled = 0;
  const endless = Readable.from(
    (function* () {
      for (;;) {
        pulled += 1;
        yield Buffer.alloc(8_192, 'x');
      }
    })(),
  );
  const sizes: number[] = [];
  await expect(read([file('a'), file('b', endless)], sizes)).rejects.toMatchObject({
    status: 422,
    type: 'not-a-pdf',
    more: { pointer: '/files/1' },
  });
  expect(sizes).toHaveLength(1);
  expect(pulled).toBeLessThan(50);
});

it('rejects a file that is shorter than the header', async () => {
  await expect(read([file('a', Buffer.from('%PDF'))])).rejects.toMatchObject({ type: 'not-a-pdf' });
  await expect(read([file('a', Buffer.alloc(0))])).rejects.toMatchObject({ type: 'not-a-pdf' });
});

it('accepts a file of exactly 25 MiB and rejects one byte more', async () => {
  const pieces = (size: number) =>
    Readable.from([pdf(1_000_000), ...Array.from({ length: 25 }, () => Buffer.alloc(1_000_000)), Buffer.alloc(size)]);
  const rest = PDF_LIMIT_BYTES - 26_000_000;
  const sizes: number[] = [];
  await read([file('a', pieces(rest))], sizes);
  expect(sizes).toEqual([PDF_LIMIT_BYTES]);
  await expect(read([file('a', pieces(rest + 1))])).rejects.toMatchObject({ status: 413 });
});

it('rejects unknown parts and two files with the same name', async () => {
  await expect(read([field('criterion', 'plan')])).rejects.toMatchObject({ status: 400, type: 'unknown-part' });
  await expect(read([file('a'), file('a')])).rejects.toMatchObject({ status: 400, type: 'repeated-part' });
});

it.each([
  ['a file that starts with the header', Buffer.from('%PDF-1.7\n'), true],
  ['a preamble before the header', Buffer.concat([Buffer.alloc(1_019, ' '), Buffer.from('%PDF-1.4')]), true],
  ['a header after the first 1024 bytes', Buffer.concat([Buffer.alloc(1_020, ' '), Buffer.from('%PDF-1.4')]), false],
  ['a truncated header', Buffer.from('%PDF'), false],
  ['a header in lower case', Buffer.from('%pdf-1.7'), false],
  ['an image', Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), false],
  ['an empty file', Buffer.alloc(0), false],
])('looksLikePdf: %s', (_name, head, expected) => {
  expect(looksLikePdf(head)).toBe(expected);
});
