/**
 * Text that waits for more: whoever could make nothing of it gets it again only once it has doubled, or has come to the
 * most that is waited for. So the text that is looked at in vain is no more than the text that came.
 */
export class PiledText {
  private pieces: string[] = [];
  private length = 0;
  private enough = 0;

  /** @param most characters that are waited for at most */
  constructor(private readonly most: number) {}

  /** @returns all the text at hand, undefined while it is worth waiting for more */
  add(text: string, last: boolean): string | undefined {
    if (text !== '') this.pieces.push(text);
    this.length += text.length;
    if (!last && this.length < this.enough) return undefined;
    const whole = this.pieces.join('');
    this.pieces = [];
    [this.length, this.enough] = [0, 0];
    return whole;
  }

  /** Puts back what is of use only with more behind it. */
  keep(rest: string): void {
    this.pieces = rest === '' ? [] : [rest];
    this.length = rest.length;
    this.enough = Math.min(2 * rest.length, this.most + 1);
  }
}
