import { distance } from 'fastest-levenshtein';
import * as v from 'valibot';
import { POINTER, readPointer } from './json-pointer.js';
import { factsOf, HTTP_METHODS, OPERATION_NAMES, type OperationName } from './operations.js';
import { isPlatformId } from './wire-types.js';

export type ContractFile = v.InferOutput<ReturnType<typeof contractSchema>>;
export type OperationSettings = v.InferOutput<OperationSchema>;
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
type OperationSchema = ReturnType<typeof operationSchema>;

/** RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRINTABLE = /^[\x20-\x7e]*$/;
const PLACEHOLDER = /\{([A-Za-z]+)\}/g;
/** The HTTP client sets these headers, or they could redirect a call to another host. */
const OWN_HEADERS = /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

/** Placeholders that describe the file to be uploaded; `{size}` is in bytes. */
export const FILE_PARAMETERS = ['fileName', 'contentType', 'size'] as const;

/** Maximum characters of the name of a note template. */
const TEMPLATE_NAME_MAX = 200;

/** Stands before the names that are known at a place. */
const KNOWN = ', known: ';
const NO_HEADER = 'must be the name of an HTTP header';
const NO_PATH = 'must begin with one / and hold neither blanks, ?, #, nor . and .. as segments';

/** An optional setting, with its description in docs/reference/contract.md. */
const maybe = <Schema extends v.GenericSchema>(meaning: string, schema: Schema) =>
  v.optional(v.pipe(schema, v.description(meaning)));

const uploadSchema = settings('must be an object with method and headers', {
  method: maybe('How the file is sent to its URL.', v.picklist(['PUT', 'POST'], 'must be PUT or POST')),
  headers: maybe(
    'Headers that replace the usual ones; null removes a header.',
    texts(v.nullable(headerValue(FILE_PARAMETERS)), headerName()),
  ),
});

/** The final states of a compliance job. */
const statesSchema = v.pipe(
  settings('must be an object with completed and failed', {
    completed: v.optional(someTexts(), []),
    failed: v.optional(someTexts(), []),
  }),
  v.metadata({ required: ['completed', 'failed'] }),
  v.check(
    ({ completed, failed }) => !completed.some((state) => failed.includes(state)),
    "a state can't be in both completed and failed",
  ),
);

/** A fault of a contract file: the path of the setting, and what must be. */
interface ContractFault {
  path: string[];
  message: string;
}

/** Lists all faults of a parsed contract file. */
export function contractFaults(file: unknown): ContractFault[] {
  const { issues = [] } = v.safeParse(contractSchema(file), file);
  return issues.map((issue) => {
    const path = issue.path?.map(({ key }) => String(key)) ?? [];
    return { path, message: issue.type === 'never' ? withSuggestion(issue.message, path.at(-1) ?? '') : issue.message };
  });
}

/** Adds the known name that a misspelt one resembles. @param message of `settings` */
function withSuggestion(message: string, name: string): string {
  const known = message.split(KNOWN)[1]?.split(', ') ?? [];
  const resembling = known.find((each) => distance(each.toLowerCase(), name.toLowerCase()) <= 1 + each.length / 6);
  return resembling === undefined ? message : `is not known here, probably ${resembling} is meant`;
}

/** @param file the file to be checked, because a setting may depend on another one */
export function contractSchema(file: unknown) {
  const operations = OPERATION_NAMES.map((name) => [name, v.optional(operationSchema(name, file))]);
  return settings('must hold a JSON object', {
    $schema: maybe(
      'Names the schema of this file for editors. The service does not read it.',
      v.string('must be a text'),
    ),
    apiKey: maybe(
      'How the API key is sent. Without it, only `initiateAuth` can be called.',
      v.pipe(
        settings('must be an object with header and, if the platform wants one, scheme', {
          header: v.optional(v.pipe(headerName(), v.description('The header that carries the key.')), ''),
          scheme: maybe(
            'The word before the key. Without it, the header contains only the key.',
            matching(TOKEN, 'must be one word such as Bearer'),
          ),
        }),
        v.metadata({ required: ['header'] }),
      ),
    ),
    operations: maybe(
      'How each operation is called, see below.',
      settings(
        'must be an object',
        Object.fromEntries(operations) as Record<OperationName, v.OptionalSchema<OperationSchema, undefined>>,
      ),
    ),
    events: maybe(
      'The locations of ids in an event whose payload the specification does not show. Unset ones are not read.',
      settings('must be an object of event types', {
        PROCESSING_SESSION_NOTES_FINISHED: maybe(
          'The ids of a processing session and of its session, in the event that its notes are finished.',
          pointers(['sessionId', 'processingId']),
        ),
      }),
    ),
    errors: maybe(
      "The location of the platform's message in an answer that refuses a call. Without it, the text of the answer is shown, at most 500 characters.",
      pointers(['message']),
    ),
    noteTemplates: maybe(
      'The names of note templates by their ids on the platform, as you want them shown. A template without one is shown by its id.',
      texts(text(templateNameFaults), text(templateIdFaults)),
    ),
  });
}

function operationSchema(name: OperationName, file: unknown) {
  const facts = factsOf(name);
  const given = (setting: string) => readPointer(file, `/operations/${name}/${setting}`);
  const elsewhere = JSON.stringify([given('query'), given('body')]);
  const placeholders = [...facts.parameters, ...(facts.upload ? FILE_PARAMETERS : [])];
  const keyHeader = facts.bearerAlways ? 'authorization' : readPointer(file, '/apiKey/header');
  const isKnown: Partial<Record<string, boolean>> = {
    body: !facts.bodyIsShown,
    upload: facts.upload !== undefined,
    states: facts.endStates === true,
  };
  const entries = {
    method: maybe('The HTTP method.', v.picklist(HTTP_METHODS, `must be one of ${HTTP_METHODS.join(', ')}`)),
    path: maybe(
      "Appended to `PLATFORM_BASE_URL` and its path. Must contain the operation's placeholders.",
      text((path) => pathFaults(path, facts.parameters, elsewhere), NO_PATH),
    ),
    headers: maybe(
      'Headers of each call, such as a version of the API.',
      texts(headerValue(placeholders), headerName(keyHeader)),
    ),
    query: maybe('Parameters of each call.', texts(template(placeholders))),
    response: maybe(
      'The locations of values in the answer, as JSON Pointers (RFC 6901).',
      pointers([...Object.keys(facts.response), ...facts.needs, ...facts.mayRead]),
    ),
    body: maybe(
      'The body, if the specification does not show it.',
      bodySchema(given('method') ?? facts.method, placeholders),
    ),
    upload: maybe('How a file is sent to the returned URL.', uploadSchema),
    states: maybe('The final states of a job. It is looked up until it has one.', statesSchema),
  };
  const known = Object.entries(entries).filter(([name]) => isKnown[name] !== false);
  return settings('must be an object', Object.fromEntries(known) as typeof entries);
}

function templateIdFaults(id: string): string[] {
  return isPlatformId(id) ? [] : ['must be the id of a note template'];
}

function templateNameFaults(name: string): string[] {
  const isName = name.trim() !== '' && name.length <= TEMPLATE_NAME_MAX && !/[\p{Cc}\p{Cs}]/u.test(name);
  return isName ? [] : [`must be a name of 1 to ${TEMPLATE_NAME_MAX} characters on one line`];
}

function pathFaults(path: string, parameters: readonly string[], elsewhere: string): string[] {
  const isPlain = /^\/(?!\/)[^\s?#\\]*$/.test(path) && PRINTABLE.test(path);
  if (!isPlain || path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment))) return [NO_PATH];
  const absent = parameters.filter((parameter) => !`${path}${elsewhere}`.includes(`{${parameter}}`));
  return [
    ...placeholderFaults(path, parameters),
    ...(/[{}]/.test(path.replace(PLACEHOLDER, '')) ? ['holds a brace that belongs to no placeholder'] : []),
    ...absent.map((parameter) => `must hold {${parameter}}`),
  ];
}

function bodySchema(method: unknown, placeholders: readonly string[]): v.GenericSchema<JsonValue> {
  if (method === 'GET') return v.custom<JsonValue>(() => false, 'is not sent with GET, use query');
  const value: v.GenericSchema<JsonValue> = v.lazy((given) => {
    if (typeof given === 'string') return template(placeholders);
    if (Array.isArray(given)) return v.array(value);
    if (isObject(given)) return v.record(v.string(), value);
    return v.custom<JsonValue>((other) => typeof other !== 'object' || other === null, 'must be JSON with plain names');
  });
  return value;
}

/** @param keyHeader the header that carries the API key */
function headerName(keyHeader?: unknown) {
  return text((name) => {
    if (!TOKEN.test(name)) return [NO_HEADER];
    if (OWN_HEADERS.test(name)) return ['is set by the connection itself, name another header'];
    const isKey = typeof keyHeader === 'string' && keyHeader.toLowerCase() === name.toLowerCase();
    return isKey ? ["carries the API key and can't be set here"] : [];
  }, NO_HEADER);
}

function headerValue(placeholders: readonly string[]) {
  return text((value) => [
    ...(PRINTABLE.test(value) ? [] : ['must hold printable ASCII only']),
    ...placeholderFaults(value, placeholders),
  ]);
}

function template(placeholders: readonly string[]) {
  return text((value) => placeholderFaults(value, placeholders));
}

function placeholderFaults(value: string, known: readonly string[]): string[] {
  const strange = [...value.matchAll(PLACEHOLDER)].filter(([, name]) => !known.includes(name ?? ''));
  const list = known.map((name) => `{${name}}`).join(', ') || 'none';
  return strange.map(([placeholder]) => `holds ${placeholder}, known here: ${list}`);
}

function pointers<Name extends string>(names: readonly Name[]) {
  const pointer = matching(POINTER, 'must be a JSON Pointer such as /data/id, or "" for the whole answer');
  const entries = Object.fromEntries(names.map((name) => [name, v.optional(pointer)]));
  return settings(
    'must be an object of JSON Pointers',
    entries as Record<Name, v.OptionalSchema<typeof pointer, undefined>>,
  );
}

function someTexts() {
  const expected = 'must be a list of at least one text';
  return v.pipe(v.array(v.pipe(v.string(expected), v.nonEmpty(expected)), expected), v.minLength(1, expected));
}

function matching(pattern: RegExp, expected: string) {
  return v.pipe(v.string(expected), v.regex(pattern, expected));
}

/** A text with its faults. */
function text(faults: (text: string) => string[], expected = 'must be a text') {
  return v.pipe(
    v.string(expected),
    v.rawCheck(({ dataset, addIssue }) => {
      if (dataset.typed) for (const message of faults(dataset.value)) addIssue({ message });
    }),
  );
}

function texts<Value extends v.GenericSchema<string> | v.GenericSchema<string | null>>(
  value: Value,
  name: v.GenericSchema<string> = v.string(),
) {
  return v.pipe(v.custom<object>(isObject, 'must be an object of texts'), v.record(name, value));
}

/** An object without other settings. */
function settings<Entries extends v.ObjectEntries>(
  expected: string,
  entries: Entries,
): v.GenericSchema<object, v.InferOutput<v.ObjectSchema<Entries, undefined>>> {
  return v.pipe(
    v.custom<object>(isObject, expected),
    v.objectWithRest(entries, v.never(`is not known here${KNOWN}${Object.keys(entries).join(', ')}`)),
  );
}

/** Rejects names that Valibot skips. */
function isObject(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return !['__proto__', 'prototype', 'constructor'].some((name) => Object.hasOwn(value, name));
}
