import type { LoggerService } from '@nestjs/common';
import { type LoggerOptions, type Logger as Pino, stdSerializers } from 'pino';
import { PROFILE_FIELDS } from './words/field-words.js';

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal';

/** Members that no log line should ever have. A second safeguard, because code that logs them is already wrong. */
const NEVER = [
  ...['authorization', 'apiKey', 'key', 'token', 'otpToken', 'sessionToken', 'secret', 'password'],
  ...['inviteUrl', 'text', 'body', 'headers', 'url', 'query', ...Object.keys(PROFILE_FIELDS)],
];

/** Options of the one pino that Nest and Fastify share. @param level as LOG_LEVEL */
export function pinoOptions(level: string): LoggerOptions {
  return {
    level,
    base: undefined,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: NEVER.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]), censor: '[redacted]' },
    // An error's own members may contain anything (a request's configuration, a row). Its kind and place are enough.
    serializers: { err: ({ type, message, stack }) => ({ type, message, stack }), req: () => undefined },
  };
}

/** Nest's contexts that log a line for each module and route at every start; these lines are for debugging. */
const FRAMEWORK_CONTEXTS = ['NestFactory', 'NestApplication', 'InstanceLoader', 'RoutesResolver', 'RouterExplorer'];

/** The context in which Nest logs an error that ends the start; `main` reports it in a sentence. */
const STARTUP_ERROR_CONTEXT = 'ExceptionHandler';

type Log = (message: unknown, ...rest: unknown[]) => void;

/** Nest's LoggerService over a pino instance: the same one that Fastify logs with. */
export class PinoLogger implements LoggerService {
  constructor(private readonly pino: Pino) {}

  log: Log = (message, ...rest) =>
    this.write(FRAMEWORK_CONTEXTS.includes(rest.at(-1) as string) ? 'debug' : 'info', message, rest);
  error: Log = (message, ...rest) =>
    this.write(rest.at(-1) === STARTUP_ERROR_CONTEXT ? 'debug' : 'error', message, rest);
  warn: Log = (message, ...rest) => this.write('warn', message, rest);
  debug: Log = (message, ...rest) => this.write('debug', message, rest);
  verbose: Log = (message, ...rest) => this.write('trace', message, rest);
  fatal: Log = (message, ...rest) => this.write('fatal', message, rest);

  /** Nest passes `(message, stack?, context?)`. */
  private write(level: Level, message: unknown, rest: unknown[]): void {
    const context = typeof rest.at(-1) === 'string' ? (rest.at(-1) as string) : undefined;
    const stack = rest.length > 1 && typeof rest[0] === 'string' ? rest[0] : undefined;
    if (message instanceof Error) this.pino[level]({ context, err: stdSerializers.err(message) });
    else if (typeof message === 'object' && message !== null) this.pino[level]({ context, stack, ...message });
    else this.pino[level]({ context, stack }, String(message));
  }
}
