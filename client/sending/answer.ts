import { errorOfAnswer, NotebridgeError } from '../notebridge-error.js';

/**
 * Checks that an answer is successful.
 *
 * @throws {NotebridgeError} for every other one, a redirect included
 */
export async function checkSuccess(answer: Response, request: Request): Promise<void> {
  if (isRedirect(answer)) throw redirected(answer, request);
  if (!answer.ok) throw await errorOfAnswer(answer);
}

/**
 * The request that follows a redirect of a GET within the service, which redirects from a renamed or merged id. Undefined
 * for every other answer: no header may go to another host.
 */
export function followed(answer: Response, request: Request): Request | undefined {
  const { method, url, headers } = request;
  if (method !== 'GET' || !isRedirect(answer)) return undefined;
  // A browser hides the target. It sends no header to another host that does not ask for it.
  if (answer.type === 'opaqueredirect') return new Request(request, { redirect: 'follow' });
  const location = answer.headers.get('location') ?? '';
  const isWithin = URL.canParse(location, url) && new URL(location, url).origin === new URL(url).origin;
  return isWithin ? new Request(new URL(location, url), { headers, redirect: 'manual' }) : undefined;
}

/** 304 and 300 name no other address. */
function isRedirect({ type, status }: Response): boolean {
  return type === 'opaqueredirect' || [301, 302, 303, 307, 308].includes(status);
}

function redirected({ status, headers }: Response, { method, url }: Request): NotebridgeError {
  const target = headers.get('location');
  const where = target === null ? 'another address' : target;
  const detail = `${new URL(url).origin} redirects this ${method} to ${where}. Use the address that it leads to as url.`;
  return new NotebridgeError('unreadable-answer', status, detail);
}

/**
 * Reads an answer to its end, so that an answer that is cut off is no answer.
 *
 * @throws {NotebridgeError} `unreadable-answer` if it must be JSON and is not
 */
export async function complete(answer: Response, isJson: boolean): Promise<Response> {
  const bytes = await answer.arrayBuffer();
  const { status, statusText } = answer;
  const headers = new Headers(answer.headers);
  if (status === 204 || status === 205) return new Response(null, { status, statusText, headers });
  if (isJson) checkJson(bytes, answer);
  // With a length of 0, openapi-fetch would give undefined, not an empty text.
  if (bytes.byteLength === 0) headers.delete('content-length');
  return new Response(bytes, { status, statusText, headers });
}

/**
 * Checks that JSON has a member that every answer of this kind has.
 *
 * @throws {NotebridgeError} `unreadable-answer` for the JSON of another service
 */
export function checkMember(data: unknown, name: string, isRight: (value: unknown) => boolean): void {
  if (isRight((data as Record<string, unknown> | null)?.[name])) return;
  const detail = `The answer has no ${name}, so it is not from notebridge. Check the url of the client.`;
  throw new NotebridgeError('unreadable-answer', 200, detail);
}

function checkJson(bytes: ArrayBuffer, { status, headers }: Response): void {
  const type = headers.get('content-type') ?? '';
  if (bytes.byteLength > 0 && /\bjson\b/.test(type) && isValid(bytes)) return;
  const found = bytes.byteLength === 0 ? 'empty' : /\bjson\b/.test(type) ? 'invalid JSON' : type || 'of no type';
  const detail = `The answer is not JSON but ${found}. Check the address, or read it with parseAs: 'text'.`;
  throw new NotebridgeError('unreadable-answer', status, detail);
}

function isValid(bytes: ArrayBuffer): boolean {
  try {
    JSON.parse(new TextDecoder().decode(bytes));
    return true;
  } catch {
    return false;
  }
}

/** An answer that is read as it arrives. @param onEnd called at its end, or when it is cut off */
export function streamed(answer: Response, onEnd: () => void): Response {
  const { status, statusText, headers } = answer;
  const reader = answer.body?.getReader();
  if (!reader) {
    onEnd();
    return answer;
  }
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    try {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      controller.close();
    } catch (error) {
      controller.error(error);
    }
    onEnd();
  };
  const cancel = (reason: unknown) => {
    onEnd();
    return reader.cancel(reason);
  };
  return new Response(new ReadableStream({ pull, cancel }, { highWaterMark: 0 }), { status, statusText, headers });
}
