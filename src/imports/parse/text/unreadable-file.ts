/** Why no row of a file can be trusted. */
type UnreadableCode =
  | 'not-utf8'
  | 'not-text'
  | 'empty-file'
  | 'bad-header'
  | 'missing-column'
  | 'duplicate-column'
  | 'wrong-kind'
  | 'bad-json'
  | 'not-a-bundle'
  | 'partial-bundle';

/**
 * The file as a whole is refused: rows that were read before count for nothing. A single bad row is never a reason.
 * The message holds no cell of the file; names of header columns may appear in it.
 */
export class UnreadableFile extends Error {
  /**
   * @param code stable, for programs
   * @param line the physical line, from 1, that shows the fault
   * @param hint one sentence or two: what is wrong and how to mend it
   */
  constructor(
    readonly code: UnreadableCode,
    readonly line: number,
    readonly hint: string,
  ) {
    super(`The file cannot be read (line ${line}): ${hint}`);
    this.name = 'UnreadableFile';
  }
}
