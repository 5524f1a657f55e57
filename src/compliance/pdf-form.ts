import type { Readable } from 'node:stream';
import type { MultipartFile, MultipartValue } from '@fastify/multipart';
import { Problem } from '../http/problem/problem.js';
import type { ComplianceFile } from '../platform/contract/wire-types.js';

/**
 * Bytes of one PDF. A part of a form has no length, and a store of pre-signed URLs wants one beforehand: so each file
 * is in memory, one at a time, until the store has it. It never touches the disk.
 */
export const PDF_LIMIT_BYTES = 25 * 1024 * 1024;

/** Names of parts that say nothing of their file. */
const PLAIN_NAMES = ['file', 'files'];
const LISTS = ['criteria', 'criteriaGroups'] as const;

type FormPart = MultipartFile | MultipartValue;

/** A form as the JSON body that asks for the same. */
interface ComplianceForm {
  files: ComplianceFile[];
  criteria?: string[];
  criteriaGroups?: string[];
}

/**
 * Reads a form: each file goes to the store as it comes, lists may repeat or be split by commas. A file's id is the name
 * of its part, or its place (`file-2`) where the name is `file` or `files`.
 *
 * @param upload brings one PDF to the store and gives the URL by which a job names it
 * @throws {Problem} 422 `not-a-pdf`, 413 `body-too-large`, 400 `unknown-part` or `repeated-part`
 */
export async function readComplianceForm(
  parts: AsyncIterable<FormPart>,
  upload: (pdf: Buffer) => Promise<string>,
): Promise<ComplianceForm> {
  const form: ComplianceForm = { files: [] };
  for await (const part of parts) {
    if (part.type === 'file') {
      const id = fileId(part.fieldname, form.files);
      form.files.push({ id, url: await upload(await readPdf(part.file, form.files.length)) });
    } else {
      const list = LISTS.find((name) => name === part.fieldname);
      if (!list) throw badPart('unknown-part', `A form holds files, ${LISTS.join(' and ')}; leave the rest out.`);
      form[list] = [...(form[list] ?? []), ...splitList(String(part.value))];
    }
  }
  return form;
}

/** Reads one file, of which no more than the limit is ever in memory; what is no PDF is refused at its first bytes. */
async function readPdf(content: Readable, position: number): Promise<Buffer> {
  const pointer = `/files/${position}`;
  const chunks: Buffer[] = [];
  let size = 0;
  let isPdf = false;
  const judge = () => {
    isPdf ||= looksLikePdf(Buffer.concat(chunks));
    if (!isPdf) throw new Problem(422, 'not-a-pdf', 'Only PDF files are checked, and this is none.', { pointer });
  };
  for await (const chunk of content as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > PDF_LIMIT_BYTES) {
      const detail = `A PDF may have ${PDF_LIMIT_BYTES / 1024 ** 2} MiB; send a larger one to POST /v1/compliance/upload-url.`;
      throw new Problem(413, 'body-too-large', detail, { pointer });
    }
    if (size >= PDF_HEAD_BYTES) judge();
  }
  judge();
  return Buffer.concat(chunks, size);
}

function fileId(name: string, before: readonly ComplianceFile[]): string {
  const id = PLAIN_NAMES.includes(name) || name === '' ? `file-${before.length + 1}` : name;
  if (!before.some((file) => file.id === id)) return id;
  throw badPart('repeated-part', 'Two files have one name; name each part after its file, or all of them files.');
}

const splitList = (text: string): string[] => text.split(',').flatMap((item) => item.trim() || []);

function badPart(type: string, detail: string): Problem {
  return new Problem(400, type, detail);
}

/** Bytes at the start of a file within which its mark has to stand: readers of PDF accept a preamble so long. */
const PDF_HEAD_BYTES = 1024;

const MARK = Buffer.from('%PDF-', 'latin1');

/** Answers whether a file begins as a PDF does (ISO 32000-1, 7.5.2). @param head its first bytes, or all of it */
export function looksLikePdf(head: Buffer): boolean {
  return head.subarray(0, PDF_HEAD_BYTES).includes(MARK);
}
