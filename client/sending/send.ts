import { NotebridgeError } from '../notebridge-error.js';
import { checkSuccess, complete, streamed } from './answer.js';
import { pause } from './pause.js';
import { isDeleted, pauseBefore } from './retry-rule.js';
import { faultOfFile, type Source, watched } from './source-of-upload.js';

/** The file or form of an upload: each attempt reads it from its beginning. */
export type UploadBody = Blob | FormData | (() => Source);

/** The options for sending a request. */
export interface Sending {
  fetch: typeof globalThis.fetch;
  /** How often it may be sent. */
  attempts: number;
  /** How long a request without a file may wait for the beginning of its answer; may be infinite. */
  answerTimeoutMs: number;
  signal: AbortSignal | undefined;
  /** Replaces the body of the request. */
  upload: UploadBody | undefined;
  /** True if the answer is read as it arrives, so that only its beginning belongs to the attempt. */
  isStreamed: boolean;
  /** True if the answer must be JSON. */
  isJson: boolean;
}

/**
 * Sends a request until it has an answer, at most `attempts` times.
 *
 * @param request with its JSON, or without a body if there is an upload
 * @returns a successful answer; its body has arrived unless it is streamed. 204 if a DELETE finds that an attempt of it was
 *   done whose answer was lost.
 * @throws {NotebridgeError} for every other answer, and `no-answer` without one
 * @throws the error of the caller's file, and the reason of the signal
 */
export async function send(request: Request, sending: Sending): Promise<Response> {
  const text = request.body === null ? '' : await request.text();
  const failures: NotebridgeError[] = [];
  for (;;) {
    try {
      return await attempt(request, text === '' ? undefined : text, sending);
    } catch (error) {
      if (!(error instanceof NotebridgeError)) throw error;
      if (isDeleted(request.method, error, failures)) return new Response(null, { status: 204 });
      failures.push(error);
      const ms = pauseBefore(failures.length, sending.attempts, error, Math.random());
      if (ms === undefined) throw error;
      await pause(ms, sending.signal);
    }
  }
}

async function attempt(request: Request, text: string | undefined, sending: Sending): Promise<Response> {
  const { signal, upload, isStreamed, isJson } = sending;
  signal?.throwIfAborted();
  const source = typeof upload === 'function' ? watched(upload()) : undefined;
  const body = source?.body ?? upload ?? text;
  const stopping = stopOf(sending);
  let isOpen = false;
  try {
    const answer = await sending.fetch(attemptOf(request, body, stopping.signal));
    stopping.keep();
    await checkSuccess(answer, request);
    isOpen = isStreamed;
    return isStreamed ? streamed(answer, stopping.end) : await complete(answer, isJson);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error instanceof NotebridgeError) throw error;
    const fault = source?.fault() ?? (upload && faultOfFile(error));
    throw fault ? fault.error : withoutAnswer(request, error);
  } finally {
    source?.close();
    if (!isOpen) stopping.end();
  }
}

/** Each attempt has its own request, because a body is read only once. Only a GET that is redirected stays the same request. */
function attemptOf(request: Request, body: unknown, signal: AbortSignal): Request {
  const redirect = request.method === 'GET' ? 'follow' : 'manual';
  return new Request(request, { body, signal, redirect, duplex: 'half' } as RequestInit);
}

/** Stops one attempt when the caller's signal is aborted, or without an answer in time. */
function stopOf({ signal, upload, answerTimeoutMs }: Sending) {
  const stopping = new AbortController();
  const stop = () => stopping.abort(signal?.reason);
  signal?.addEventListener('abort', stop);
  const late = new Error(`no answer within ${answerTimeoutMs / 1_000} s`);
  const isLimited = !upload && Number.isFinite(answerTimeoutMs);
  const timer = isLimited ? setTimeout(() => stopping.abort(late), answerTimeoutMs) : undefined;
  /** The answer has begun. */
  const keep = () => clearTimeout(timer);
  const end = () => {
    keep();
    signal?.removeEventListener('abort', stop);
  };
  return { signal: stopping.signal, keep, end };
}

function withoutAnswer({ url }: Request, error: unknown): NotebridgeError {
  const { cause = error } = error as { cause?: unknown };
  const { code, message } = cause as { code?: unknown; message?: string };
  const why = typeof code === 'string' ? code : message || 'no reason given';
  const detail = `${new URL(url).origin} gave no answer (${why}). Check that notebridge runs, and its address.`;
  return new NotebridgeError('no-answer', 0, detail, { cause: error });
}
