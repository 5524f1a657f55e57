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

/** Allows undefined for each optional option and parameter, also with the compiler's `exactOptionalPropertyTypes`. */
type Loose<T> = {
  [Key in keyof T]:
    | (Key extends 'params' | 'query' ? Loose<T[Key]> : T[Key])
    | (object extends Pick<T, Key> ? undefined : never);
};

/** The forms in which a call can give its answer. */
type Form = 'json' | 'text' | 'blob' | 'arrayBuffer' | 'stream';

/** The options of a call, without the one that decides the type of its data. */
type OptionsOf<Path extends keyof paths, V extends Verb> = Loose<
  Omit<NonNullable<MaybeOptionalInit<paths[Path], V>>, 'parseAs' | 'signal'> & { signal?: AbortSignal | null }
>;

/** The options are optional if no member of them is required. They are not inferred, so misspelled members are errors. */
type OptionsArgument<Options, F> =
  RequiredKeys<Options> extends never
    ? [options?: Options & { parseAs?: F | undefined }]
    : [options: Options & { parseAs?: F | undefined }];

/** A successful answer. */
type Success<Operation extends Record<string | number, unknown>, F> = Extract<
  FetchResponse<Operation, { parseAs: F }, Media>,
  { data: unknown }
>;

/**
 * Sends a request and returns the data of a successful answer.
 *
 * @param path as in `openapi.json`, such as `/v1/clients/{externalId}`
 * @param options `params.path`, `params.query`, `body`, `headers`, `signal`, `parseAs`, as in openapi-fetch
 * @throws {TypeError} if a parameter of the path is missing
 * @throws {NotebridgeError} for every answer that is not successful, and `no-answer` without one
 * @throws the reason of `signal` once it is aborted
 */
export type Method<V extends Verb> = <Path extends PathsOf<V>, F extends Form = 'json'>(
  path: Path,
  ...options: OptionsArgument<OptionsOf<Path, V>, F>
) => Promise<Pick<Success<paths[Path][V] & Record<string | number, unknown>, F>, 'data' | 'response'>>;

/** Every call of the API, typed by `openapi.json`. */
export interface Methods {
  GET: Method<'get'>;
  PUT: Method<'put'>;
  POST: Method<'post'>;
  PATCH: Method<'patch'>;
  DELETE: Method<'delete'>;
}
