import type { FetchResponse, MaybeOptionalInit } from 'openapi-fetch';
import type { components, paths } from './schema.js';

/** The shapes of the API, by their names in `openapi.json`. */
export type Schemas = components['schemas'];

type Verb = 'get' | 'put' | 'post' | 'patch' | 'delete';

/** The typed calls return JSON; `parseAs` gives other content. */
export type Media = 'application/json' | 'application/problem+json';

/** The paths that have a method. */
type PathsOf<V extends Verb> = {
  [Path in keyof paths]: paths[Path] extends Record<V, object> ? Path : never;
}[keyof paths];

type RequiredKeys<T> = { [Key in keyof T]-?: object extends Pick<T, Key> ? never : Key }[keyof T];

/** The options are optional if no member of them is required. Further members keep the inference of `Options` exact. */
type OptionsArgument<Options> =
  RequiredKeys<Options> extends never
    ? [options?: Options & { [name: string]: unknown }]
    : [options: Options & { [name: string]: unknown }];

/** A successful answer. */
type Success<Operation extends Record<string | number, unknown>, Options> = Extract<
  FetchResponse<Operation, Options, Media>,
  { data: unknown }
>;

/**
 * Sends a request and returns the data of a successful answer.
 *
 * @param path as in `openapi.json`, such as `/v1/clients/{externalId}`
 * @param options `params.path`, `params.query`, `body`, `headers`, `signal`, `parseAs`, as in openapi-fetch
 * @throws {NotebridgeError} for every other answer, and `no-answer` without one
 * @throws the reason of `signal` once it is aborted
 */
export type Method<V extends Verb> = <Path extends PathsOf<V>, Options extends MaybeOptionalInit<paths[Path], V>>(
  path: Path,
  ...options: OptionsArgument<Options>
) => Promise<Pick<Success<paths[Path][V] & Record<string | number, unknown>, Options>, 'data' | 'response'>>;

/** Every call of the API, typed by `openapi.json`. */
export interface Methods {
  GET: Method<'get'>;
  PUT: Method<'put'>;
  POST: Method<'post'>;
  PATCH: Method<'patch'>;
  DELETE: Method<'delete'>;
}
