import { codeOf } from '../../errors/error-code.js';

/** True for an error that Redis itself answered, so that it can be reached. */
export const isRedisReply = (error: unknown): error is Error => error instanceof Error && error.name === 'ReplyError';

/** Sentences for error replies of Redis, whose first word is a code. The error of a script quotes that code. */
const REPLIES: readonly [reply: RegExp, sentence: string][] = [
  [/\b(WRONGPASS|NOAUTH)\b|invalid password/, 'Redis refuses the user or the password of REDIS_URL: correct it.'],
  [/\b(READONLY|UNBLOCKED|MASTERDOWN)\b/, 'REDIS_URL leads to a read-only replica of Redis: name the primary.'],
  [/\bOOM\b/, 'Redis is out of memory: raise its maxmemory, or remove the data of other programs.'],
  [/max number of clients/, 'Redis has no free connection: raise its maxclients, or run fewer processes.'],
  [/\bLOADING\b/, 'Redis is still loading its data: wait.'],
  [/\b(MOVED|CROSSSLOT|CLUSTERDOWN|ASK)\b/, 'REDIS_URL names a Redis Cluster: name a Redis without cluster mode.'],
  [
    /\bNOPERM\b|can't run this command|unknown command/i,
    'Redis does not allow the user in REDIS_URL a command that the queues need: grant it +@all -@dangerous and the keys of QUEUE_PREFIX.',
  ],
];

/** Codes of PostgreSQL. Those of Node begin with an E, such as EPIPE. */
const SQLSTATE = /^[0-9FHPX][0-9A-Z]{4}$/;

/** The settings that may lead to the queues. */
export type StoreSetting = 'REDIS_URL' | 'DATABASE_URL';

/** The fault of the queues' store, in a sentence without any part of the error that may quote a value. */
export function storeFault(error: unknown, setting: StoreSetting): string {
  if (isRedisReply(error)) {
    const [, sentence] = REPLIES.find(([reply]) => reply.test(error.message)) ?? [];
    return sentence ?? `Redis answers with the error ${/^[A-Z]{2,20}\b/.exec(error.message)?.[0] ?? 'unknown'}.`;
  }
  if (setting === 'REDIS_URL') return 'Redis cannot be reached at REDIS_URL.';
  const code = codeOf(error);
  if (code === '25006') return 'The queues reached a read-only PostgreSQL: DATABASE_URL must lead to the primary.';
  if (SQLSTATE.test(code)) return `PostgreSQL refuses a statement of the queues (${code}).`;
  return 'PostgreSQL cannot be reached at DATABASE_URL.';
}

/** False for an error that may only follow from another one, such as a closed connection. */
export const namesCause = (error: unknown): boolean =>
  isRedisReply(error) || (error instanceof Error && 'code' in error && error.code !== undefined);
