import { createServer, type IncomingHttpHeaders, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { canary } from '../../harness/canaries.js';
import { DEFAULT_API_KEY, type Simulator } from '../../simulator/app.js';

/** An answer that the simulator would not give. */
export interface Words {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** Delay of the answer in milliseconds. */
  readonly afterMs?: number;
}

/** The simulator behind a proxy with scripted answers, whose sessions and results contain private words. */
export interface TalkingPlatform {
  readonly url: string;
  /** Answers the next requests with this method and a matching path, one answer each. */
  say(method: string, path: RegExp, ...words: Words[]): void;
  /** Number of scripted answers that were not used yet. */
  left(): number;
  /** Bodies of received requests, as texts. */
  readonly received: readonly string[];
  close(): Promise<void>;
}

/** @param apiKey the service's key, which is replaced by the simulator's own */
export async function startTalkingPlatform(simulator: Simulator, apiKey: string): Promise<TalkingPlatform> {
  const scripts: { method: string; path: RegExp; words: Words }[] = [];
  const received: string[] = [];
  const server = createServer(async (incoming, reply) => {
    const { method = 'GET', url = '/', headers } = incoming;
    const body = await buffer(incoming).catch(() => undefined);
    if (!body) return; // the client has closed the connection
    received.push(body.toString('latin1'));
    const at = scripts.findIndex((script) => script.method === method && script.path.test(url));
    const [scripted] = at >= 0 ? scripts.splice(at, 1) : [];
    if (scripted) {
      setTimeout(() => {
        reply.writeHead(scripted.words.status, { 'content-type': 'application/json', ...scripted.words.headers });
        reply.end(scripted.words.body);
      }, scripted.words.afterMs ?? 0);
      return;
    }
    passOn(simulator, method, url, withKey(headers, apiKey), body, reply);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  simulator.state.publicUrl = url;
  return {
    url,
    received,
    left: () => scripts.length,
    say: (method, path, ...words) => scripts.push(...words.map((each) => ({ method, path, words: each }))),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function withKey(headers: IncomingHttpHeaders, apiKey: string): IncomingHttpHeaders {
  const { authorization, ...others } = headers;
  if (authorization === undefined) return others;
  return { ...others, authorization: authorization.replace(apiKey, DEFAULT_API_KEY) };
}

function passOn(
  { url: base }: Pick<Simulator, 'url'>,
  method: string,
  url: string,
  headers: IncomingHttpHeaders,
  body: Buffer,
  reply: ServerResponse,
): void {
  const call = request(`${base.replace(/localhost/, '127.0.0.1')}${url}`, { method, headers });
  call.on('response', async (response) => {
    const text = (await buffer(response)).toString();
    const { 'content-length': _, 'transfer-encoding': __, ...kept } = response.headers;
    reply.writeHead(response.statusCode ?? 502, kept).end(spoken(url, text));
  });
  call.on('error', () => reply.destroy());
  call.end(body);
}

/** Adds canaries to the texts in the platform's answers about sessions and jobs. */
function spoken(url: string, text: string): string {
  if (!/therapy-session|compliance\/job|processing/.test(url) || !text.startsWith('{')) return text;
  const marks: Record<string, string> = {
    text: canary('NoteText'),
    categoryName: canary('Category'),
    headline: canary('Headline'),
    gist: canary('Gist'),
    name: canary('Entity'),
    summary: canary('Summary'),
    message: canary('SessionError'),
    code: canary('ErrorCode'),
    evidence: canary('Evidence'),
  };
  const answer: unknown = JSON.parse(text, (name, value) =>
    typeof value === 'string' && marks[name] ? `${marks[name]} ${value}` : value,
  );
  return JSON.stringify({ ...(answer as object), extra: canary('Extra') });
}
