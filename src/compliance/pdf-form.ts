import { randomUUID } from 'node:crypto';
import type { Readable } from 'node:stream';
import type { MultipartFile, MultipartValue } from '@fastify/multipart';
import { inBlocks } from '../http/body/blocks.js';
import { Problem } from '../http/problem/problem.js';
import type { ComplianceFile } from '../platform/contract/wire-types.js';

/**
 * Maximum size of one PDF. A store with pre-signed URLs needs the length in advance, and a form part has none, so each
 * file is buffered in memory, one at a time, and never written to disk.
 */
export const PDF_LIMIT_BYTES = 25 * 1024 * 1024;

/** Describes a PDF to the platform. @param size in bytes; 0 if unknown */
export const pdfFile = (size: number) => ({ fileName: `${randomUUID()}.pdf`, contentType: 'application/pdf', size });

/** Part names that are not used as file ids. */
const GENERIC_NAMES = ['', 'file', 'files'];
const LISTS = ['criteria', 'criteriaGroups'] as const;

const TOO_LARGE = `A PDF must have at most ${PDF_LIMIT_BYTES / 1024 ** 2} MiB. Upload a larger one by POST /v1/compliance/upload-url.`;

/** A form as the equivalent JSON body. */
interface ComplianceForm {
  files: ComplianceFile[];
  criteria?: string[];
  criteriaGroups?: string[];
}

/**
 * Reads a form and uploads each file as it arrives. Lists may be repeated or separated by commas. A file's id is the name
 * of its part, or its position (`file-2`) if the name is `file` or `files`.
 *
 * @param upload uploads one PDF and returns the URL that identifies it in a job
 * @throws {Problem} 422 `not-a-pdf`, 413 `body-too-large`, 400 `unknown-part` or `repeated-part`
 */
export async function readComplianceForm(
  parts: AsyncIterable<MultipartFile | MultipartValue>,
  upload: (pdf: Pdf) => Promise<string>,
): Promise<ComplianceForm> {
  const form: ComplianceForm = { files: [] };
  for await (const part of parts) {
    if (part.type === 'file') form.files.push(await uploadedFile(part, form.files, upload));
    else {
      const list = LISTS.find((name) => name === part.fieldname);
      const detail = `A form may hold only files, ${LISTS.join(' and ')}. Remove other parts.`;
      if (!list) throw new Problem('unknown-part', detail);
      form[list] = [...(form[list] ?? []), ...splitList(String(part.value))];
    }
  }
  return form;
}

async function uploadedFile(
  part: MultipartFile,
  earlier: readonly ComplianceFile[],
  upload: (pdf: Pdf) => Promise<string>,
): Promise<ComplianceFile> {
  const id = fileId(part.fieldname, earlier);
  return { id, url: await upload(await readPdf(part.file, earlier.length)) };
}

/** A PDF in memory. */
export interface Pdf {
  readonly chunks: readonly Buffer[];
  readonly size: number;
}

/** Reads one file, at most up to the limit. A file that is not a PDF is rejected by its first bytes. */
async function readPdf(content: Readable, position: number): Promise<Pdf> {
  const pointer = `/files/${position}`;
  const chunks: Buffer[] = [];
  let size = 0;
  let isPdf = false;
  const checkHead = () => {
    isPdf ||= looksLikePdf(Buffer.concat(chunks));
    if (!isPdf) throw new Problem('not-a-pdf', 'This file is not a PDF. Submit only PDF files.', { pointer });
  };
  for await (const chunk of inBlocks(content) as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > PDF_LIMIT_BYTES) throw new Problem('body-too-large', TOO_LARGE, { pointer });
    if (size >= PDF_HEAD_BYTES && !isPdf) checkHead();
  }
  checkHead();
  return { chunks, size };
}

function fileId(name: string, before: readonly ComplianceFile[]): string {
  const id = GENERIC_NAMES.includes(name) ? `file-${before.length + 1}` : name;
  const detail = 'Two files have the same name. Use different part names, or name all parts files.';
  if (before.some((file) => file.id === id)) throw new Problem('repeated-part', detail);
  return id;
}

const splitList = (text: string): string[] => text.split(',').flatMap((item) => item.trim() || []);

/** Bytes at the start of a file that must contain the header: PDF readers accept a preamble up to this length. */
const PDF_HEAD_BYTES = 1024;

/** True if a file starts like a PDF (ISO 32000-1, 7.5.2). @param head its first bytes, or all of them */
export function looksLikePdf(head: Buffer): boolean {
  return head.subarray(0, PDF_HEAD_BYTES).includes('%PDF-');
}
