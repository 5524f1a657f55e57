import type { Contract, JsonValue } from '../contract/contract.js';
import { factsOf, type OperationName } from '../contract/operations.js';
import { PlatformError } from '../contract/platform-errors.js';

/** What a placeholder of the contract stands for in one call. */
export type CallParameters = Readonly<Record<string, string | number>>;

const PLACEHOLDER = /\{([A-Za-z]+)\}/g;
const ONLY_PLACEHOLDER = /^\{([A-Za-z]+)\}$/;
/** Would change the address instead of standing in it; a URL reads the encoded spellings alike. */
const NO_PATH_SEGMENT = /^\.{0,2}$/;

/**
 * Builds the request of one operation from what the spec shows and what the contract file adds. Pure.
 *
 * @param platform its address without a slash at the end, whose own path is kept
 * @param call with the body that the spec shows; where it shows none, the contract's own is sent
 * @throws {PlatformError} `not-configured` when the contract lacks a setting, `rejected` when a parameter can't stand in
 *   an address
 */
export function platformRequest(
  contract: Contract,
  platform: { base: string; apiKey: string },
  call: { operation: OperationName; parameters?: CallParameters; body?: object },
): { method: string; url: string; headers: Record<string, string>; data: string | undefined } {
  const { operation, parameters = {} } = call;
  const rule = contract.operations[operation];
  const missing = contract.missingFor(operation);
  if (!rule.method || !rule.path || missing.length > 0)
    throw new PlatformError('not-configured', operation, { missing });
  const path = fill(rule.path, parameters, (text, name) => {
    if (!NO_PATH_SEGMENT.test(text)) return encodeWellFormed(text);
    throw new PlatformError('rejected', operation, { reason: `${name} is empty or dots, nothing was sent` });
  });
  const query = Object.entries(rule.query)
    .map(([name, value]) => `${encodeWellFormed(name)}=${encodeWellFormed(fill(value, parameters, String))}`)
    .join('&');
  const body = call.body ?? (rule.body === undefined ? undefined : fillBody(rule.body, parameters));
  return {
    method: rule.method,
    url: `${platform.base}${path}${query && `?${query}`}`,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...fillHeaders(rule.headers, parameters),
      ...credentials(contract, operation, platform.apiKey),
    },
    data: body === undefined ? undefined : JSON.stringify(body),
  };
}

/** Fills the placeholders of contract headers, with lower-case names; what a header can't hold is percent-encoded. */
export function fillHeaders(headers: Record<string, string>, parameters: CallParameters): Record<string, string> {
  const filled = Object.entries(headers).map(([name, value]) => [
    name.toLowerCase(),
    fill(value, parameters, (text) => text.replace(/[^\x20-\x7e]+/gu, encodeWellFormed)),
  ]);
  return Object.fromEntries(filled);
}

function credentials(contract: Contract, operation: OperationName, apiKey: string): Record<string, string> {
  if (factsOf(operation).bearerAlways) return { authorization: `Bearer ${apiKey}` };
  if (!contract.apiKey) return {};
  const { header, scheme } = contract.apiKey;
  return { [header.toLowerCase()]: scheme ? `${scheme} ${apiKey}` : apiKey };
}

/** A value that is nothing but `{size}` becomes a number, as JSON writes sizes. */
function fillBody(value: JsonValue, parameters: CallParameters): JsonValue {
  if (typeof value === 'string') {
    return parameters[ONLY_PLACEHOLDER.exec(value)?.[1] ?? ''] ?? fill(value, parameters, String);
  }
  if (Array.isArray(value)) return value.map((item) => fillBody(item, parameters));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillBody(item, parameters)]));
}

function fill(template: string, parameters: CallParameters, encode: (text: string, name: string) => string): string {
  return template.replace(PLACEHOLDER, (whole, name: string) => {
    const value = parameters[name];
    return value === undefined ? whole : encode(String(value), name);
  });
}

/** Half a surrogate pair has no UTF-8 form and would make the encoder throw. */
function encodeWellFormed(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\uFFFD'));
}
