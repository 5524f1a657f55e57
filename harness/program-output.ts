/** The output of a program. */
export class ProgramOutput {
  /** The whole output, or its end. */
  text = '';
  bytes = 0;

  /** @param keeps minimum characters of its end that are kept */
  constructor(private readonly keeps = Number.POSITIVE_INFINITY) {}

  add(chunk: string): void {
    this.text += chunk;
    this.bytes += Buffer.byteLength(chunk);
    if (this.text.length > 2 * this.keeps) this.text = this.text.slice(-this.keeps);
  }
}
