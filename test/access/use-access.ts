import { problemTypeIn } from '../../harness/problem-type.js';
import { ApiDescription } from '../../harness/world/api-description.js';
import type { Scope } from '../../src/access/identity/scope.js';
import { ADMIN_KEY } from '../support/app.js';
import { useWorld } from '../world/use-world.js';

interface Asked {
  /** Defaults to the administrator's key; null for none. */
  key?: string | null;
  /** Sent as JSON unless it is a string, a form or bytes. */
  body?: unknown;
  headers?: Record<string, string>;
  /** False if the test replaced the answer. Otherwise it must match the API's description. */
  isChecked?: boolean;
  /** Another process of the service. */
  on?: { url: string };
}

/** A world for tests of callers, and a function that sends requests as any caller. Each answer must match the API's description. */
export function useAccess() {
  const settings = { PLATFORM_PARTNER_DOMAIN: 'https://recorder.example.org', TRUSTED_PROXIES: '127.0.0.1' };
  const world = useWorld({ settings });

  /** Sends a request such as `GET /v1/clients`. */
  async function ask<Body = object>(
    line: string,
    { key = ADMIN_KEY, body, headers, isChecked = true, on = world }: Asked = {},
  ) {
    const [method = '', path = ''] = line.split(' ');
    const isJson = body !== undefined && typeof body === 'object' && !(body instanceof FormData);
    const response = await fetch(on.url + path, {
      method,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(isJson && { 'content-type': 'application/json' }),
        ...headers,
      },
      body: (isJson ? JSON.stringify(body) : body) as string | FormData | undefined,
    });
    const type = response.headers.get('content-type') ?? '';
    const text = await response.text();
    if (isChecked)
      (await ApiDescription.of(world.app)).check(method, path, {
        status: response.status,
        headers: response.headers,
        text,
      });
    const json = type.includes('json') && !type.includes('ndjson') ? JSON.parse(text) : {};
    const problem = problemTypeIn(json);
    return { status: response.status, headers: response.headers, text, body: json as Body & Problem, problem };
  }

  return {
    world,
    ask,
    async makeKey(scopes: readonly Scope[], more: { expiresAt?: string | null } = {}) {
      const { status, body } = await ask<{ id: string; key: string; prefix: string }>('POST /v1/api-keys', {
        body: { name: 'a key', scopes, ...more },
      });
      expect(status).toBe(201);
      return body;
    },
  };
}

interface Problem {
  pointer?: string;
  scope?: string;
  scopes?: string[];
}
