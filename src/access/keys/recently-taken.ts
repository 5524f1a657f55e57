/** Hashes that are remembered at most. */
const MOST = 1_000;

/** Hashes of what was taken last as a caller's proof: never whether it still would be. */
export class RecentlyTaken {
  private readonly hashes = new Set<string>();

  has(hash: Buffer): boolean {
    return this.hashes.has(hash.toString('base64'));
  }

  /** @param isTaken as it was looked up just now */
  note(hash: Buffer, isTaken: boolean): void {
    const name = hash.toString('base64');
    this.hashes.delete(name);
    if (isTaken) this.hashes.add(name);
    const [oldest] = this.hashes;
    if (this.hashes.size > MOST && oldest !== undefined) this.hashes.delete(oldest);
  }
}
