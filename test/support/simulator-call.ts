import { DEFAULT_API_KEY, type Simulator } from '../../simulator/app.js';

/** An answer of the simulator. */
interface SimulatorAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** Parses the answer as JSON. */
  json<Body = Record<string, string>>(): Body;
}

/** Sends one call with the API key, and the body as JSON. */
export async function callSimulator(
  simulator: Simulator,
  method: string,
  path: string,
  body?: unknown,
  key = DEFAULT_API_KEY,
): Promise<SimulatorAnswer> {
  const response = await fetch(path.startsWith('http') ? path : `${simulator.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) };
}

/** Creates a provider through the simulator's API. */
export async function newSimulatedProvider(simulator: Simulator, email = 'ada@example.test'): Promise<string> {
  const body = { email, firstName: 'Ada', lastName: 'Byron' };
  return (await callSimulator(simulator, 'POST', '/users/providers', body)).json().userId ?? '';
}

/** Creates a client of this provider through the API. */
export async function newSimulatedClient(
  simulator: Simulator,
  therapistUserId: string,
  more: object = {},
): Promise<string> {
  const body = { firstName: 'Cy', lastName: 'Lee', therapistUserId, ...more };
  return (await callSimulator(simulator, 'POST', '/users/clients', body)).json().userId ?? '';
}
