import { NotebridgeError } from '../notebridge-error.js';
import { checkSuccess, complete, followed, streamed } from './answer.js';
import { pause } from './pause.js';
import { isDeleted, isLost, pauseBefore } from './retry-rule.js';
import { faultOfFile, type Source, watched } from './source-of-upload.js';

/** The file or form of an upload: each attempt reads it from its beginning. */
export type UploadBody = Blob | FormData | (() => Source);

/** The options for sending a request. */
export interface Sending {
  fetch: typeof globalThis.fetch;
  /** How often it may be sent. */
  attempts: number;
  /** How long a request without a file may take, up to the end of an answer that is not streamed; may be infinite. */
  answerTimeoutMs: number;
  signal: AbortSignal | undefined;
  /** Replaces the body of the request. */
  upload: UploadBody | undefined;
  /** True if the answer is read as it arrives, so that only its beginning belongs to the attempt. */
  isStreamed: boolean;
  /** True if the answer must be JSON. */
  isJson: boolean;
}

/** Longer timers expire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

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
  let isAnswerLost = false;
  for (let sent = 1; ; sent += 1) {
    try {
      return await attempt(request, text === '' ? undefined : text, sending);
    } catch (error) {
      if (!(error instanceof NotebridgeError)) throw error;
      if (isDeleted(request.method, error, isAnswerLost)) return new Response(null, { status: 204 });
      isAnswerLost ||= isLost(error);
      const ms = pauseBefore(sent, sending.attempts, error, Math.random());
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
    const answer = await fetched(request, body, sending.fetch, stopping.signal);
    await checkSuccess(answer, request);
    if (isStreamed) stopping.keep();
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

/**
 * Sends one attempt with its own request, because a body is read only once. The signal goes to `fetch` itself: a Request
 * of Node no longer follows its signal after a garbage collection (https://github.com/nodejs/undici/issues/4068).
 */
async function fetched(
  request: Request,
  body: unknown,
  fetch: Sending['fetch'],
  signal: AbortSignal,
): Promise<Response> {
  const answer = await fetch(new Request(request, { body, redirect: 'manual', duplex: 'half' } as RequestInit), {
    signal,
  });
  const next = followed(answer, request);
  if (!next) return answer;
  await answer.body?.cancel();
  return fetch(next, { signal });
}

/** Stops one attempt when the caller's signal is aborted, or without an answer in time. */
function stopOf({ signal, upload, answerTimeoutMs }: Sending) {
  const stopping = new AbortController();
  const stop = () => stopping.abort(signal?.reason);
  signal?.addEventListener('abort', stop);
  const late = new Error(`no answer within ${answerTimeoutMs / 1_000} s`);
  const isLimited = !upload && answerTimeoutMs <= MAX_TIMER_MS;
  const timer = isLimited ? setTimeout(() => stopping.abort(late), answerTimeoutMs) : undefined;
  /** The rest of the answer may take as long as it takes. */
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
