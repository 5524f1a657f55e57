import { toJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { isJsonObject } from '../../text/json-object.js';
import { POINTER } from './json-pointer.js';
import { factsOf, HTTP_METHODS, OPERATION_NAMES, type OperationName } from './operations.js';

export type ContractFile = v.InferOutput<typeof contractSchema>;
export type OperationSettings = v.InferOutput<OperationSchema>;
type OperationSchema = ReturnType<typeof operationSchema>;

/** The name of a header (RFC 9110, section 5.6.2), except those that the HTTP client sets or that redirect a call. */
const HEADER =
  /^(?!(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$)[\w!#$%&'*+.^`|~-]+$/i;
const headerName = matching(HEADER, 'must be the name of an HTTP header that the connection does not set itself');
const PRINTABLE = /^[\x20-\x7e]*$/;
const PLACEHOLDER = /\{([A-Za-z]+)\}/g;

/** Placeholders that describe the file to be uploaded; `{size}` is in bytes. */
export const FILE_PARAMETERS = ['fileName', 'contentType', 'size'] as const;

const NO_PATH = 'must begin with one / and hold neither blanks, ?, #, nor . and .. as segments';

/** An optional setting, with its description in docs/reference/contract.md. */
const maybe = <Schema extends v.GenericSchema>(meaning: string, schema: Schema) =>
  v.optional(v.pipe(schema, v.description(meaning)));

/** The settings of each operation. */
const operationSchemas = Object.fromEntries(
  OPERATION_NAMES.map((name) => [name, v.optional(operationSchema(name))]),
) as Record<OperationName, v.OptionalSchema<OperationSchema, undefined>>;

/** The contract file. */
export const contractSchema = settings('must hold a JSON object', {
  $schema: maybe(
    'Names the schema of this file for editors. The service does not read it.',
    v.string('must be a text'),
  ),
  apiKey: maybe(
    'How the API key is sent. Without it, only `initiateAuth` can be called.',
    settings('must be an object with header and, if the platform wants one, scheme', {
      header: v.pipe(headerName, v.description('The header that carries the key.')),
      scheme: maybe(
        'The word before the key. Without it, the header contains only the key.',
        matching(/^[\x21-\x7e]+$/, 'must be one word such as Bearer'),
      ),
    }),
  ),
  operations: maybe('How each operation is called, see below.', settings('must be an object', operationSchemas)),
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
    texts(matching(/\S/, 'must be a name')),
  ),
});

/**
 * The JSON Schema of the contract file, for editors. It accepts every file that the service accepts, and a few more:
 * rules that are functions are checked only by `notebridge contract check`.
 */
export function contractJsonSchema(): object {
  const title = 'The contract file of notebridge, which PLATFORM_CONTRACT names';
  const options = { target: 'draft-2020-12', typeMode: 'output', errorMode: 'ignore' } as const;
  return { title, ...toJsonSchema(contractSchema, options) };
}

function operationSchema(name: OperationName) {
  const facts = factsOf(name);
  const needed = facts.parameters.map((parameter) => `{${parameter}}`);
  const placeholders = [...facts.parameters, ...(facts.upload ? FILE_PARAMETERS : [])];
  const isKnown: Partial<Record<string, boolean>> = {
    body: !facts.bodyIsShown,
    upload: facts.upload !== undefined,
    states: facts.endStates === true,
  };
  const entries = {
    method: maybe('The HTTP method.', v.picklist(HTTP_METHODS, `must be one of ${HTTP_METHODS.join(', ')}`)),
    path: maybe(
      "Appended to `PLATFORM_BASE_URL` and its path. Must contain the operation's placeholders.",
      text((path) => (isPath(path) ? placeholderFaults(path, facts.parameters) : [NO_PATH]), NO_PATH),
    ),
    headers: maybe('Headers of each call, such as a version of the API.', texts(headerValue(placeholders), headerName)),
    query: maybe('Parameters of each call.', texts(text((value) => placeholderFaults(value, placeholders)))),
    response: maybe(
      'The locations of values in the answer, as JSON Pointers (RFC 6901).',
      pointers([...Object.keys(facts.response), ...facts.needs, ...facts.mayRead]),
    ),
    body: maybe(
      'The body, if the specification does not show it.',
      v.pipe(
        v.custom<object | string | number | boolean | null>(() => true, 'must be JSON'),
        check((body) => placeholderFaults(JSON.stringify(body), placeholders)),
      ),
    ),
    upload: maybe(
      'How a file is sent to the returned URL.',
      settings('must be an object with method and headers', {
        method: maybe('How the file is sent to its URL.', v.picklist(['PUT', 'POST'], 'must be PUT or POST')),
        headers: maybe(
          'Headers that replace the usual ones; null removes a header.',
          texts(v.nullable(headerValue(FILE_PARAMETERS)), headerName),
        ),
      }),
    ),
    states: maybe(
      'The final states of a job. It is looked up until it has one.',
      settings('must be an object with completed and failed', { completed: someTexts(), failed: someTexts() }),
    ),
  };
  const known = Object.entries(entries).filter(([name]) => isKnown[name] !== false);
  return v.pipe(
    settings('must be an object', Object.fromEntries(known) as typeof entries),
    v.forward(
      v.partialCheck(
        [['path'], ['query'], ['body']],
        ({ path, ...others }) => !path || needed.every((each) => JSON.stringify([path, others]).includes(each)),
        `must hold ${needed.join(' and ')}`,
      ),
      ['path'],
    ),
  );
}

function isPath(path: string): boolean {
  const isPlain = /^\/(?!\/)[^\s?#\\]*$/.test(path) && PRINTABLE.test(path);
  return isPlain && !path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment));
}

function headerValue(placeholders: readonly string[]) {
  return text((value) => [
    ...(PRINTABLE.test(value) ? [] : ['must hold printable ASCII only']),
    ...placeholderFaults(value, placeholders),
  ]);
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
  return v.pipe(v.string(expected), check(faults));
}

function check<Value>(faults: (value: Value) => string[]) {
  return v.rawCheck<Value>(({ dataset, addIssue }) => {
    if (dataset.typed) for (const message of faults(dataset.value)) addIssue({ message });
  });
}

function texts<Value extends v.GenericSchema<string> | v.GenericSchema<string | null>>(
  value: Value,
  name: v.GenericSchema<string> = v.string(),
) {
  return v.pipe(v.custom<object>(isJsonObject, 'must be an object of texts'), v.record(name, value));
}

/** An object without other settings. */
function settings<Entries extends v.ObjectEntries>(
  expected: string,
  entries: Entries,
): v.GenericSchema<object, v.InferOutput<v.ObjectSchema<Entries, undefined>>> {
  const unknown = v.never(`is not known here, known: ${Object.keys(entries).join(', ')}`);
  return v.pipe(v.custom<object>(isJsonObject, expected), v.objectWithRest(entries, unknown, 'must be set'));
}
