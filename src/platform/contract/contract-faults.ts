import { EVENT_POINTERS, OPEN_EVENT_TYPES } from './contract.js';
import { isJsonPointer } from './json-pointer.js';
import { HTTP_METHODS, UPLOAD_METHODS } from './operation-rule.js';
import { builtInRule, FILE_PARAMETERS, factsOf, OPERATION_NAMES, type OperationName } from './operations.js';

type Fields = Record<string, unknown>;

const KNOWN = ['apiKey', 'operations', 'events'];

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRINTABLE = /^[\x20-\x7e]*$/;
const PLACEHOLDER = /\{([A-Za-z]+)\}/g;
/** Set by the HTTP client itself, or a way to another host. */
const OWN_HEADERS = [
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/**
 * Lists everything that is wrong with a contract file, each as `json.path: what is expected`.
 *
 * @param file the parsed JSON
 */
export function contractFaults(file: unknown): string[] {
  if (!isFields(file)) return ['the file: must hold a JSON object'];
  const key = [...apiKeyFaults(file.apiKey), ...eventsFaults(file.events)];
  const operations = file.operations === undefined ? {} : file.operations;
  if (!isFields(operations)) return [...unknownKeys('', file, KNOWN), ...key, 'operations: must be an object'];
  const keyHeader = isFields(file.apiKey) && typeof file.apiKey.header === 'string' ? file.apiKey.header : undefined;
  return [
    ...unknownKeys('', file, KNOWN),
    ...key,
    ...unknownKeys('operations', operations, OPERATION_NAMES),
    ...OPERATION_NAMES.filter((name) => operations[name] !== undefined).flatMap((name) =>
      operationFaults(name, operations[name], keyHeader),
    ),
  ];
}

function apiKeyFaults(apiKey: unknown): string[] {
  if (apiKey === undefined) return [];
  if (!isFields(apiKey)) return ['apiKey: must be an object with header and, if the platform wants one, scheme'];
  return [
    ...unknownKeys('apiKey', apiKey, ['header', 'scheme']),
    ...headerNameFaults('apiKey.header', apiKey.header),
    ...(apiKey.scheme === undefined || isToken(apiKey.scheme)
      ? []
      : ['apiKey.scheme: must be one word such as Bearer']),
  ];
}

function operationFaults(name: OperationName, rule: unknown, keyHeader: string | undefined): string[] {
  const at = `operations.${name}`;
  if (!isFields(rule)) return [`${at}: must be an object`];
  const facts = factsOf(name);
  const settings = [
    ...['method', 'path', 'headers', 'query', 'response'],
    ...(facts.bodyIsShown ? [] : ['body']),
    ...(facts.upload ? ['upload'] : []),
    ...(facts.endStates ? ['states'] : []),
  ];
  const placeholders = [...facts.parameters, ...(facts.upload ? FILE_PARAMETERS : [])];
  const reserved = facts.bearerAlways ? 'authorization' : keyHeader?.toLowerCase();
  return [
    ...unknownKeys(at, rule, settings),
    ...oneOf(`${at}.method`, rule.method, HTTP_METHODS),
    ...pathFaults(name, rule),
    ...headersFaults(`${at}.headers`, rule.headers, placeholders, reserved),
    ...textsFaults(`${at}.query`, rule.query, placeholders),
    ...(facts.bodyIsShown ? [] : bodyFaults(name, rule, placeholders)),
    ...responseFaults(name, rule.response),
    ...(facts.upload ? uploadFaults(`${at}.upload`, rule.upload) : []),
    ...(facts.endStates ? statesFaults(`${at}.states`, rule.states) : []),
  ];
}

function pathFaults(name: OperationName, rule: Fields): string[] {
  const at = `operations.${name}.path`;
  const { parameters } = factsOf(name);
  const path = rule.path === undefined ? builtInRule(name).path : rule.path;
  if (path === undefined) return [];
  if (typeof path !== 'string' || !isPlainPath(path)) {
    return [`${at}: must begin with one / and hold neither blanks, ?, #, nor . and .. as segments`];
  }
  const elsewhere = JSON.stringify([rule.query, rule.body]) ?? '';
  const absent = parameters.filter((parameter) => !`${path}${elsewhere}`.includes(`{${parameter}}`));
  return [
    ...placeholderFaults(at, path, parameters),
    ...(/[{}]/.test(path.replace(PLACEHOLDER, '')) ? [`${at}: holds a brace that belongs to no placeholder`] : []),
    ...absent.map((parameter) => `${at}: must hold {${parameter}}`),
  ];
}

function isPlainPath(path: string): boolean {
  if (!/^\/(?!\/)[^\s?#\\]*$/.test(path) || !PRINTABLE.test(path)) return false;
  return !path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment));
}

function headersFaults(at: string, headers: unknown, placeholders: readonly string[], reserved?: string): string[] {
  if (!isFields(headers)) return textsFaults(at, headers, placeholders);
  return [
    ...Object.keys(headers).flatMap((name) => headerNameFaults(`${at}.${name}`, name)),
    ...Object.keys(headers)
      .filter((name) => name.toLowerCase() === reserved)
      .map((name) => `${at}.${name}: carries the API key and can't be set here`),
    ...Object.entries(headers)
      .filter(([, value]) => typeof value === 'string' && !PRINTABLE.test(value))
      .map(([name]) => `${at}.${name}: must hold printable ASCII only`),
    ...textsFaults(at, headers, placeholders),
  ];
}

function headerNameFaults(at: string, name: unknown): string[] {
  if (!isToken(name)) return [`${at}: must be the name of an HTTP header`];
  return OWN_HEADERS.includes(name.toLowerCase())
    ? [`${at}: is set by the connection itself, name another header`]
    : [];
}

function textsFaults(at: string, texts: unknown, placeholders: readonly string[]): string[] {
  if (texts === undefined) return [];
  if (!isFields(texts)) return [`${at}: must be an object of texts`];
  return Object.entries(texts).flatMap(([name, value]) =>
    typeof value === 'string'
      ? placeholderFaults(`${at}.${name}`, value, placeholders)
      : [`${at}.${name}: must be a text`],
  );
}

function bodyFaults(name: OperationName, rule: Fields, placeholders: readonly string[]): string[] {
  const at = `operations.${name}.body`;
  if (rule.body === undefined) return [];
  const method = rule.method ?? builtInRule(name).method;
  if (method === 'GET') return [`${at}: can't be sent with GET, use query`];
  return bodyPlaceholderFaults(at, rule.body, placeholders);
}

function bodyPlaceholderFaults(at: string, value: unknown, placeholders: readonly string[]): string[] {
  if (typeof value === 'string') return placeholderFaults(at, value, placeholders);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) => bodyPlaceholderFaults(`${at}.${name}`, item, placeholders));
}

function responseFaults(name: OperationName, response: unknown): string[] {
  const facts = factsOf(name);
  const known = [...Object.keys(facts.response), ...facts.needs, ...facts.mayRead];
  return pointersFaults(`operations.${name}.response`, response, known);
}

function eventsFaults(events: unknown): string[] {
  if (events === undefined) return [];
  if (!isFields(events)) return ['events: must be an object of event types'];
  return [
    ...unknownKeys('events', events, OPEN_EVENT_TYPES),
    ...OPEN_EVENT_TYPES.flatMap((type) => pointersFaults(`events.${type}`, events[type], EVENT_POINTERS)),
  ];
}

function pointersFaults(at: string, pointers: unknown, known: readonly string[]): string[] {
  if (pointers === undefined) return [];
  if (!isFields(pointers)) return [`${at}: must be an object of JSON Pointers`];
  return [
    ...unknownKeys(at, pointers, known),
    ...Object.entries(pointers)
      .filter(([, pointer]) => typeof pointer !== 'string' || !isJsonPointer(pointer))
      .map(([key]) => `${at}.${key}: must be a JSON Pointer such as /data/id, or "" for the whole answer`),
  ];
}

/** Null says that a header is not sent. */
function withoutNulls(headers: unknown): unknown {
  if (!isFields(headers)) return headers;
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== null));
}

function uploadFaults(at: string, upload: unknown): string[] {
  if (upload === undefined) return [];
  if (!isFields(upload)) return [`${at}: must be an object with method and headers`];
  return [
    ...unknownKeys(at, upload, ['method', 'headers']),
    ...oneOf(`${at}.method`, upload.method, UPLOAD_METHODS),
    ...headersFaults(`${at}.headers`, withoutNulls(upload.headers), FILE_PARAMETERS),
  ];
}

function statesFaults(at: string, states: unknown): string[] {
  if (states === undefined) return [];
  if (!isFields(states)) return [`${at}: must be an object with completed and failed`];
  const { completed, failed } = states;
  const both = Array.isArray(completed) && Array.isArray(failed) && completed.some((state) => failed.includes(state));
  return [
    ...unknownKeys(at, states, ['completed', 'failed']),
    ...(isTexts(completed) ? [] : [`${at}.completed: must be a list of at least one text`]),
    ...(isTexts(failed) ? [] : [`${at}.failed: must be a list of at least one text`]),
    ...(both ? [`${at}: a state can't be in both completed and failed`] : []),
  ];
}

function placeholderFaults(at: string, text: string, known: readonly string[]): string[] {
  const strange = [...text.matchAll(PLACEHOLDER)].filter(([, name]) => !known.includes(name ?? ''));
  const list = known.map((name) => `{${name}}`).join(', ') || 'none';
  return strange.map(([placeholder]) => `${at}: holds ${placeholder}, known here: ${list}`);
}

function oneOf(at: string, value: unknown, allowed: readonly string[]): string[] {
  return value === undefined || allowed.some((item) => item === value) ? [] : [`${at}: must be ${allowed.join(', ')}`];
}

function unknownKeys(at: string, fields: Fields, known: readonly string[]): string[] {
  const strange = Object.keys(fields).filter((key) => !known.includes(key));
  return strange.map((key) => `${at === '' ? '' : `${at}.`}${key}: is not known here, known: ${known.join(', ')}`);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isToken(value: unknown): value is string {
  return typeof value === 'string' && TOKEN.test(value);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string' && item !== '');
}
