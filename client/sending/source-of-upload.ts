/** A stream of the caller. */
export type Source = ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** The body of one attempt. */
export interface WatchedSource {
  body: AsyncIterable<Uint8Array>;
  /** The error of the stream, if it has failed: repeating the request does not help against it. */
  fault(): { error: unknown } | undefined;
  /** Closes what the attempt has not read. */
  close(): void;
}

/** Tells errors of a caller's stream from those of the connection, which `fetch` reports alike. */
export function watched(source: Source): WatchedSource {
  const iterator = (source as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  let failure: { error: unknown } | undefined;
  const read = () => {
    const reading = iterator.next();
    reading.catch((error: unknown) => {
      failure = { error };
    });
    return reading;
  };
  // Begins immediately: a file that cannot be opened must not fail before anyone listens, as that ends the process.
  let first: Promise<IteratorResult<Uint8Array>> | undefined = read();
  const next = () => {
    const reading = first ?? read();
    first = undefined;
    return reading;
  };
  const end = async () => (await iterator.return?.()) ?? { done: true as const, value: undefined };
  return {
    body: { [Symbol.asyncIterator]: () => ({ next, return: end }) },
    fault: () => failure,
    close: () => void end().catch(() => undefined),
  };
}

/** Errors of `fetch` about a file: it has changed since `openAsBlob`, or its length differs from the given one. */
const FILE_FAULTS: ReadonlySet<unknown> = new Set(['NotReadableError', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH']);

/** Finds the error of a caller's file in an error of `fetch`. */
export function faultOfFile(error: unknown): { error: unknown } | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { name, code, cause } = error as { name?: unknown; code?: unknown; cause?: unknown };
  return FILE_FAULTS.has(name) || FILE_FAULTS.has(code) ? { error } : faultOfFile(cause);
}
