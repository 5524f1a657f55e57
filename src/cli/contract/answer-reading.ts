import { PlatformClient } from '../../platform/clients/platform-client.js';
import { UsersClient } from '../../platform/clients/users-client.js';
import type { Contract } from '../../platform/contract/contract.js';
import { readPointer, typeAt } from '../../platform/contract/json-pointer.js';
import type { OperationName } from '../../platform/contract/operations.js';
import { PlatformError } from '../../platform/contract/platform-errors.js';
import type { SessionAnswer } from '../../platform/contract/session-answer.js';
import { PlatformAnswer } from '../../platform/http/platform-answer.js';
import type { PlatformHttp } from '../../platform/http/platform-http.js';

/** The parts of an answer that the service reads: types, never values. */
export interface AnswerReading {
  operation: OperationName;
  /** Why the answer cannot be read; undefined if it can. */
  fault: string | undefined;
  /** Parts of a session that are left out. */
  incomplete: readonly string[];
  pointers: { name: string; pointer: string; found: string }[];
}

/** Reads an answer as the service does. */
export async function readAnswer(contract: Contract, operation: OperationName, body: unknown): Promise<AnswerReading> {
  const { response } = contract.operations[operation];
  const pointers = Object.entries(response).flatMap(([name, pointer]) =>
    pointer === undefined ? [] : [{ name, pointer, found: typeAt(body, pointer) }],
  );
  const reading = { operation, pointers, incomplete: [] };
  try {
    return { ...reading, fault: undefined, incomplete: partsLeftOut(await callWith(contract, operation, body)) };
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    return { ...reading, fault: error.reason ?? `it reports that nothing was done (${error.kind})` };
  }
}

/** Calls an operation with the service's own client, which gets this answer. */
function callWith(contract: Contract, operation: OperationName, body: unknown): Promise<unknown> {
  const { response } = contract.operations[operation];
  const answer = new PlatformAnswer(operation, 200, JSON.stringify(body), contract);
  const call: PlatformHttp['call'] = async (_call, read) => read(answer);
  const http = { call } as PlatformHttp;
  const [users, client] = [new UsersClient(http), new PlatformClient(http, contract)];
  const id = String(readPointer(body, `${response.session ?? ''}/sessionId`));
  const file = { fileName: '', contentType: '', size: 0 };
  const calls: Partial<Record<OperationName, () => Promise<unknown>>> = {
    checkUser: () => users.checkUser({ email: '' }),
    createProvider: () => users.createProvider({}),
    createClient: () => users.createClient({ therapistUserId: '' }),
    deleteUser: () => users.deleteUser(''),
    createSession: () => client.createSession({} as Parameters<typeof client.createSession>[0]),
    getSession: () => client.getSession(id),
    updateSession: () => client.updateSession(id, {}),
    updateSessionTemplates: () => client.updateSessionTemplates(id, []),
    getProcessingSession: () => client.getProcessingSession(''),
    recordingUploadUrl: () => client.uploadTarget('recordingUploadUrl', file),
    complianceUploadUrl: () => client.uploadTarget('complianceUploadUrl', file),
    submitComplianceJob: () =>
      client.submitComplianceJob({ files: [] } as Parameters<typeof client.submitComplianceJob>[0]),
    getComplianceJob: () => client.getComplianceJob(''),
    initiateAuth: () => client.initiateAuth(''),
  };
  return calls[operation]?.() ?? Promise.resolve();
}

function partsLeftOut(result: unknown): readonly string[] {
  const { incomplete, session } = (result ?? {}) as Partial<SessionAnswer> & { session?: SessionAnswer };
  return incomplete ?? session?.incomplete ?? [];
}

/** The reading as lines for people. */
export function readingLines({ operation, fault, incomplete, pointers }: AnswerReading): string {
  const width = Math.max(0, ...pointers.map(({ name, pointer }) => `${name} ${JSON.stringify(pointer)}`.length));
  const verdict = fault === undefined ? `✓ ${operation}: the answer is readable` : `✗ ${operation}: ${fault}`;
  return [
    verdict,
    ...pointers.map(({ name, pointer, found }) => `  ${`${name} ${JSON.stringify(pointer)}`.padEnd(width)}  ${found}`),
    ...(incomplete.length > 0 ? [`  not completely readable: ${incomplete.join(', ')}`] : []),
  ].join('\n');
}

/** The types in an answer, by name: `{ "userId": "text" }`. Shows no value, and one item of each list. */
export function shapeOf(value: unknown, depth = 0): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [depth > 5 ? '…' : shapeOf(value[0], depth + 1)];
  if (typeof value !== 'object' || value === null) return typeAt(value, '');
  if (depth > 5) return '…';
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shapeOf(item, depth + 1)]));
}
