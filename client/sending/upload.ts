import type { paths } from '../schema.js';
import type { UploadBody } from './send.js';

/** The paths that take files. */
export type UploadPath = '/v1/recordings' | '/v1/imports' | '/v1/compliance/jobs';

export interface UploadOptions<Path extends UploadPath> {
  params?: Pick<paths[Path]['post']['parameters'], 'query' | 'header'> | undefined;
  headers?: Record<string, string> | undefined;
  signal?: AbortSignal | undefined;
  /** Media type. Defaults to that of the Blob or form. */
  type?: string | undefined;
  /** Bytes of a stream. A recording needs it; a Blob has it. */
  length?: number | undefined;
}

/**
 * Sends a file or a form by POST, and reads it as it is sent.
 *
 * @param body a Blob (`fs.openAsBlob` makes one of a file on disk), a form of Blobs, or in Node a function that opens a
 *   stream; it is called for each attempt
 * @throws {TypeError} for another body, such as a path or an open stream
 * @throws {NotebridgeError} as the typed calls
 */
export type Upload = <Path extends UploadPath>(
  path: Path,
  body: UploadBody,
  options?: UploadOptions<Path>,
) => Promise<UploadAnswer<Path>>;

/** The answer to an upload. */
export interface UploadAnswer<Path extends UploadPath> {
  data: JsonOf<paths[Path]['post']['responses']>;
  response: Response;
}

type JsonOf<Responses> = {
  [Status in keyof Responses & (200 | 201 | 202)]: Responses[Status] extends {
    content: { 'application/json': infer T };
  }
    ? T
    : never;
}[keyof Responses & (200 | 201 | 202)];

/** The options of the call that sends an upload. */
export function callOptions<Path extends UploadPath>({
  type,
  length,
  headers,
  ...options
}: UploadOptions<Path>): Record<string, unknown> {
  return {
    ...options,
    headers: {
      ...headers,
      ...(type !== undefined && { 'content-type': type }),
      ...(length !== undefined && { 'content-length': String(length) }),
    },
  };
}
