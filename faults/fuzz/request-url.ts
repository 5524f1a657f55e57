import type { Draft } from './draft.js';
import { ODD_TEXTS, pick } from './odd-values.js';
import type { Operation, Parameter } from './openapi.js';

const ODD_QUERIES = [
  'limit[]=1',
  'limit[$gt]=',
  '__proto__[a]=1',
  'constructor=1',
  '%zz',
  '%00=%00',
  '=',
  '&&',
  'x=1',
  'limit=1&limit=2',
  'cursor=%ED%A0%80',
];

/** Makes the path and query of a request. */
export function urlOf(draft: Draft, { path, parameters }: Operation): string {
  const { random, fit } = draft;
  const value = ({ name, schema = {} }: Parameter) => {
    const made = draft.odd(name, 0.12) ? pick(random, ODD_TEXTS) : fit.of(random, path, name, schema);
    return encoded(String(made));
  };
  let url = path;
  for (const parameter of parameters) {
    if (parameter.in === 'path') url = url.replace(`{${parameter.name}}`, () => value(parameter) || '%20');
  }
  const query = parameters
    .filter((parameter) => parameter.in === 'query' && random.chance(parameter.required ? 0.98 : 0.3))
    .map((parameter) => `${parameter.name}=${value(parameter)}`);
  if (draft.odd('query', 0.04)) {
    query.push(pick(random, ODD_QUERIES));
  }
  if (query.length > 0) url += `?${query.join('&')}`;
  if (draft.odd('path', 0.02)) {
    url = pick(random, [
      `${url}/`,
      `/${url}`,
      url.replace('/v1', '/V1'),
      url.replace('/', '/./'),
      `${path}/%zz`,
      `${path}/..%2f`,
      `${path};x=1`,
      `${url}#f`,
      `${path}/%00`,
      `/${'a/'.repeat(1_000)}`,
      `${path}/${'x'.repeat(1_100)}`,
      '*',
    ]);
  }
  return url;
}

/** Percent-encodes a text. A lone surrogate becomes the bytes that some encoders produce. */
function encoded(text: string): string {
  return text.split(HALF).map(encodeURIComponent).join('%ED%A0%80');
}

const HALF = /\p{Cs}/u;
