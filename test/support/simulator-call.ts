import { DEFAULT_API_KEY, type Simulator } from '../../simulator/app.js';

/** What the simulator answered. */
interface SimulatorAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** The answer as JSON; throws where it is none. */
  json<Body = Record<string, string>>(): Body;
}

/** One call with the API key; the body is sent as JSON when given. */
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

/** A provider of the simulator, made through its API. */
export async function newSimulatedProvider(simulator: Simulator, email = 'ada@example.test'): Promise<string> {
  const body = { email, firstName: 'Ada', lastName: 'Byron' };
  return (await callSimulator(simulator, 'POST', '/users/providers', body)).json().userId ?? '';
}

/** A client of this provider, made through the API. */
export async function newSimulatedClient(
  simulator: Simulator,
  therapistUserId: string,
  more: object = {},
): Promise<string> {
  const body = { firstName: 'Cy', lastName: 'Lee', therapistUserId, ...more };
  return (await callSimulator(simulator, 'POST', '/users/clients', body)).json().userId ?? '';
}
