import 'reflect-metadata';
import { Clock } from '../../config/clock.js';
import type { Env } from '../../config/env.js';
import type { Contract } from '../../platform/contract/contract.js';
import { readContract } from '../../platform/contract/contract-file.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import { waysOf } from '../../platform/http/connections.js';
import { exchange } from '../../platform/http/exchange.js';
import { CONNECT_TIMEOUT_MS, platformRequest } from '../../platform/http/platform-http.js';
import { serviceSettings } from '../api/service-settings.js';
import { type AnswerReading, readAnswer, readingLines, shapeOf } from './answer-reading.js';

/** No user has it: the domain is reserved (RFC 2606). */
const RESERVED_EMAIL = 'nobody@example.invalid';

/** A call that changes nothing. */
const CALL = { operation: 'checkUser', body: { email: RESERVED_EMAIL } } as const;

/** A request and its answer, without the API key and without values of the answer. */
interface Probe {
  request: { method: string; url: string; headers: Record<string, string>; body: object };
  /** Why there is no readable answer. */
  fault: string | undefined;
  shape: unknown;
  reading: AnswerReading | undefined;
}

/** Sends one call to the platform as the service does: with its timeouts, its proxy and its checks of certificates. */
export async function probePlatform(env: Env, contract: Contract): Promise<Probe> {
  const { operation, body } = CALL;
  const sent = platformRequest(contract, env, CALL);
  const { query } = contract.operations[operation];
  const isShown = (name: string) => name === 'accept' || name === 'content-type';
  // The key is in a header, and other headers and the query may contain secrets, too.
  const headers = Object.entries(sent.headers).map(([name, value]) => [name, isShown(name) ? value : '(not shown)']);
  const names = Object.keys(query).map((name) => `${encodeURIComponent(name)}=(not shown)`);
  const url = [sent.url.split('?')[0], names.join('&')].filter((part) => part !== '').join('?');
  const request = { method: sent.method, url, headers: Object.fromEntries(headers), body };
  try {
    const ways = waysOf(env);
    const options = { env, contract, clock: new Clock(), ways, connectMs: CONNECT_TIMEOUT_MS };
    const answer = await exchange(operation, sent, options);
    const reading = await readAnswer(contract, operation, answer.body);
    return { request, fault: reading.fault, shape: shapeOf(answer.body), reading };
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    return { request, fault: error.message, shape: undefined, reading: undefined };
  }
}

/** `notebridge contract probe`: exits 2 without a readable answer. */
export async function probe({ json }: { json?: boolean }): Promise<void> {
  const { env, demo } = serviceSettings();
  if (demo) console.error("This environment has no settings of a service, so the demo's platform is used.");
  const contract = readContract(env.PLATFORM_CONTRACT);
  const probed = await probePlatform(env, contract);
  if (probed.fault !== undefined) process.exitCode = 2;
  if (json) return console.log(JSON.stringify(probed, null, 2));
  const { request, fault, shape, reading } = probed;
  console.log(`${request.method} ${request.url}`);
  for (const [name, value] of Object.entries(request.headers)) console.log(`${name}: ${value}`);
  console.log(`\n${JSON.stringify(request.body)}\n`);
  if (shape !== undefined) console.log(`The types in the answer: ${JSON.stringify(shape, null, 2)}\n`);
  console.log(reading ? readingLines(reading) : `✗ ${fault}`);
}
