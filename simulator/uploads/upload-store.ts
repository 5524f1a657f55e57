import type { SeededRandom } from '../seeded-random.js';
import type { SimulatedInput } from '../sessions/session.js';
import type { NowMs } from '../timers.js';

/** A pre-signed URL and its file, if it was sent. Its bytes are counted and hashed, never stored. */
export interface Upload {
  id: string;
  kind: 'recording' | 'compliance';
  fileName: string;
  /** Authorises uploads to one URL. */
  token: string;
  /** Milliseconds since the Unix epoch. */
  expiresAt: number;
  /** Value of the last attempt. */
  bytes: number;
  /** In hex; null until an attempt has arrived completely. */
  sha256: string | null;
  isPdf: boolean;
  /** Number of attempts so far, including interrupted ones. */
  attempts: number;
}

/** The two URLs of an upload: for the file, and for a session or job that refers to it. */
interface UploadUrls {
  uploadUrl: string;
  fileUrl: string;
}

/** Prefix of file URLs of the store. */
const STORE = 's3://simulated-files/';

/** All uploads by id. */
export class UploadStore {
  private readonly byId = new Map<string, Upload>();

  /** @param publicUrl read at each use, because it is known only once the platform listens */
  constructor(
    private readonly random: SeededRandom,
    private readonly nowMs: NowMs,
    private readonly publicUrl: () => string,
    private readonly lifeSeconds: () => number,
    private readonly fileUrls: () => 'web' | 's3',
  ) {}

  prepare(kind: Upload['kind'], fileName: string): UploadUrls {
    const upload: Upload = {
      id: this.random.uuid(),
      kind,
      fileName,
      token: this.random.hex(40),
      expiresAt: this.nowMs() + this.lifeSeconds() * 1_000,
      bytes: 0,
      sha256: null,
      isPdf: false,
      attempts: 0,
    };
    this.byId.set(upload.id, upload);
    return {
      uploadUrl: `${this.publicUrl()}/uploads/${upload.id}?token=${upload.token}`,
      fileUrl: `${this.fileUrls() === 's3' ? STORE : this.webFiles()}${upload.id}`,
    };
  }

  find(id: string): Upload | undefined {
    return this.byId.get(id);
  }

  /** The upload of a file URL of this platform. */
  findByFileUrl(url: string): Upload | undefined {
    const prefix = [STORE, this.webFiles()].find((start) => url.startsWith(start));
    return prefix === undefined ? undefined : this.byId.get(url.slice(prefix.length));
  }

  /** True if a recording in this platform's own store was never uploaded, or is empty. */
  isLacking(input: SimulatedInput): boolean {
    if (input.kind === 'text') return false;
    return input.urls.some((url) => {
      const isOwn = url.startsWith(this.webFiles()) || url.startsWith(STORE);
      return isOwn && !this.findByFileUrl(url)?.bytes;
    });
  }

  /** A URL to listen to a session's recording, valid as long as an upload URL; undefined without audio. */
  readUrl({ sessionId, input }: { sessionId: string; input: SimulatedInput }): string | undefined {
    if (input.kind === 'text') return undefined;
    const expires = Math.floor(this.nowMs() + this.lifeSeconds() * 1_000);
    return `${this.publicUrl()}/recordings/${sessionId}?expires=${expires}`;
  }

  private webFiles(): string {
    return `${this.publicUrl()}/files/`;
  }

  list(): Upload[] {
    return [...this.byId.values()];
  }
}
