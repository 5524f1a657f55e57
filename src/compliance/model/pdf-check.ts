/** Bytes at the start of a file within which its mark has to stand: readers of PDF accept a preamble so long. */
export const PDF_HEAD_BYTES = 1024;

const MARK = Buffer.from('%PDF-', 'latin1');

/** Answers whether a file begins as a PDF does (ISO 32000-1, 7.5.2). @param head its first bytes, or all of it */
export function looksLikePdf(head: Buffer): boolean {
  return head.subarray(0, PDF_HEAD_BYTES).includes(MARK);
}
