import { errorOfAnswer, NotebridgeError } from './notebridge-error.js';
import { pause } from './pause.js';
import { pauseBefore } from './retry-rule.js';

/** How long a request without a file may wait for the beginning of its answer. `Prefer: wait` takes up to 60 seconds. */
const ANSWER_TIMEOUT_MS = 90_000;

/** What is sent as a file or a form: each attempt reads it from its beginning. */
export type UploadBody = Blob | FormData | (() => ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>);

/** How a request is sent. */
export interface Sending {
  fetch: typeof globalThis.fetch;
  /** How often it may be sent. */
  attempts: number;
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
 * @returns a successful answer; its body has arrived unless it is streamed
 * @throws {NotebridgeError} for every other answer, and `no-answer` without one
 */
export async function send(request: Request, sending: Sending): Promise<Response> {
  const text = request.body === null ? '' : await request.text();
  for (let sent = 1; ; sent += 1) {
    try {
      return await attempt(request, text === '' ? undefined : text, sending);
    } catch (error) {
      if (!(error instanceof NotebridgeError)) throw error;
      const ms = pauseBefore(sent, sending.attempts, error, Math.random());
      if (ms === undefined) throw error;
      await pause(ms, sending.signal);
    }
  }
}

async function attempt(request: Request, text: string | undefined, sending: Sending): Promise<Response> {
  const { signal, upload, isStreamed, isJson } = sending;
  signal?.throwIfAborted();
  const stopping = new AbortController();
  const stop = () => stopping.abort(signal?.reason);
  signal?.addEventListener('abort', stop);
  const late = new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1_000} s`);
  const timer = upload ? undefined : setTimeout(() => stopping.abort(late), ANSWER_TIMEOUT_MS);
  let isOpen = false;
  try {
    // Each attempt has its own request, because a body is read only once.
    const body = typeof upload === 'function' ? upload() : (upload ?? text);
    const init = { body, signal: stopping.signal, duplex: 'half' } as RequestInit;
    const answer = await sending.fetch(new Request(request, init));
    clearTimeout(timer);
    if (!answer.ok) throw await errorOfAnswer(answer);
    isOpen = isStreamed;
    return isStreamed ? answer : await complete(answer, isJson);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw error instanceof NotebridgeError ? error : withoutAnswer(request, error);
  } finally {
    clearTimeout(timer);
    if (!isOpen) signal?.removeEventListener('abort', stop);
  }
}

/** Reads an answer to its end, so that an answer that is cut off is no answer. */
async function complete(answer: Response, isJson: boolean): Promise<Response> {
  const text = await answer.text();
  const { status, statusText, headers } = answer;
  const type = headers.get('content-type') ?? '';
  if (isJson && text !== '' && !/\bjson\b/.test(type)) {
    const detail = `The answer is not JSON but ${type || 'of no type'}. Check the address, or read it with parseAs: 'text'.`;
    throw new NotebridgeError('unreadable-answer', status, detail);
  }
  return new Response(text === '' ? null : text, { status, statusText, headers });
}

function withoutAnswer({ url }: Request, error: unknown): NotebridgeError {
  const { cause = error } = error as { cause?: unknown };
  const { code, message } = cause as { code?: unknown; message?: string };
  const why = typeof code === 'string' ? code : message || 'no reason given';
  const detail = `${new URL(url).origin} gave no answer (${why}). Check that notebridge runs, and its address.`;
  return new NotebridgeError('no-answer', 0, detail, { cause: error });
}
