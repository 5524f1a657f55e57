import { Readable } from 'node:stream';
import { PDF_LIMIT_BYTES, readComplianceForm } from './pdf-form.js';

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
  readComplianceForm(stream(parts), async (content) => `https://store.example/${sizes.push(content.length)}`);

it('files go to the store one after the other and are named by their part, or by their place', async () => {
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

it('lists repeat, or are split by commas, before and after the files', async () => {
  const form = await read([field('criteria', 'plan, attendees'), file('files'), field('criteria', 'service_modality')]);
  expect(form.criteria).toEqual(['plan', 'attendees', 'service_modality']);
  expect(form.criteriaGroups).toBeUndefined();
});

it('a file that is no PDF is refused before it is read to its end and before it is sent', async () => {
  let taken = 0;
  const endless = Readable.from(
    (function* () {
      for (;;) {
        taken += 1;
        yield Buffer.alloc(512, 'x');
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
  expect(taken).toBeLessThan(50);
});

it('a short file is judged by all of it', async () => {
  await expect(read([file('a', Buffer.from('%PDF'))])).rejects.toMatchObject({ type: 'not-a-pdf' });
  await expect(read([file('a', Buffer.alloc(0))])).rejects.toMatchObject({ type: 'not-a-pdf' });
});

it('a file may have 25 MiB and not one byte more', async () => {
  const pieces = (size: number) =>
    Readable.from([pdf(1_000_000), ...Array.from({ length: 25 }, () => Buffer.alloc(1_000_000)), Buffer.alloc(size)]);
  const rest = PDF_LIMIT_BYTES - 26_000_000;
  const sizes: number[] = [];
  await read([file('a', pieces(rest))], sizes);
  expect(sizes).toEqual([PDF_LIMIT_BYTES]);
  await expect(read([file('a', pieces(rest + 1))])).rejects.toMatchObject({ status: 413 });
});

it('a part with another name, and two files with one name, are refused', async () => {
  await expect(read([field('criterion', 'plan')])).rejects.toMatchObject({ status: 400, type: 'unknown-part' });
  await expect(read([file('a'), file('a')])).rejects.toMatchObject({ status: 400, type: 'repeated-part' });
});
