import type { operations } from '../../client/schema.js';
import { api, body, type Schemas } from './client.js';

type Words = operations['Operations.words']['responses'][200]['content']['application/json'];
export type Vocabulary = keyof Words;

/** Read once, before the first page of a session. Contains no personal data, so it stays after a sign-out. */
let words: Words | undefined;

export async function loadWords(signal?: AbortSignal): Promise<void> {
  words ??= await body(api.GET('/v1/words', { signal }));
}

/** The words for a code; undefined if a newer service has added it. */
export const wordOf = (of: Vocabulary, code: string): Schemas['WordResponse'] | undefined => words?.[of][code];

export const labelOf = (of: Vocabulary, code: string): string => wordOf(of, code)?.label ?? code;

/** All codes and labels, in the order of the service. */
export const labelsOf = (of: Vocabulary): [code: string, label: string][] =>
  Object.entries(words?.[of] ?? {}).map(([code, { label }]) => [code, label]);

/** The code of a vocabulary that a text is, such as a filter in the URL. */
export const codeIn = <Code extends string>(of: Vocabulary, text: string | undefined): Code | undefined =>
  text !== undefined && wordOf(of, text) ? (text as Code) : undefined;

/** A label within a sentence. */
export const inSentence = (label: string): string =>
  /^[A-Z][a-z ]/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label;
