import { plainToInstance, Transform, Type } from 'class-transformer';
import {
  ArrayNotEmpty,
  ArrayUnique,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsOptional,
  IsString,
  Matches,
  Max,
  Min,
  MinLength,
  validateSync,
} from 'class-validator';
import { HoldsAtLeast, IsForRehearsal, IsHttpUrl, IsPlatformUrl, NARROWEST_AGE_WINDOW_SECONDS } from './env-rules.js';
import { isLoopbackHost, normaliseBaseUrl, parseByteSize, splitList, splitSecrets } from './env-values.js';

export type Role = 'api' | 'worker';

const list = ({ value }: { value: unknown }) => (typeof value === 'string' ? splitList(value) : value);
const secrets = ({ value }: { value: unknown }) => (typeof value === 'string' ? splitSecrets(value) : value);
const flag = ({ value }: { value: unknown }) =>
  typeof value === 'string'
    ? ({ true: true, '1': true, false: false, '0': false }[value.trim().toLowerCase()] ?? value)
    : value;
const trimmed = ({ value }: { value: unknown }) => (typeof value === 'string' ? value.trim() : value);
const THRESHOLD = /^(unlimited|\d{1,3}(\.\d+)?%,\d{1,7})$/;
const DATA_KEY = /^[A-Za-z0-9_-]{1,32}:[A-Za-z0-9+/]{43}=$/;

/** The whole environment of one process, read once and validated with every fault listed at once. */
export class Env {
  @IsPlatformUrl({ message: 'must be the https:// address of the platform (http:// only for a loopback host)' })
  @Transform(({ value }) => normaliseBaseUrl(value))
  PLATFORM_BASE_URL!: string;

  @Transform(trimmed)
  @Matches(/^[\x20-\x7e]+$/, {
    message: 'must hold the API key that the platform gave you, in one line of printable ASCII',
  })
  PLATFORM_API_KEY!: string;

  @Transform(secrets)
  @ArrayNotEmpty({ message: 'must hold the webhook secret (comma-separated while one is being rotated)' })
  PLATFORM_WEBHOOK_SECRET!: string[];

  @MinLength(16, { message: 'must hold a first administrator key of at least 16 characters (openssl rand -hex 24)' })
  ADMIN_API_KEY!: string;

  @Type(() => Number)
  @IsInt()
  @Min(0)
  @Max(65_535)
  PORT: number = 3000;

  @IsString()
  HOST: string = '127.0.0.1';

  @IsOptional()
  @IsHttpUrl()
  PUBLIC_URL?: string;

  @Transform(list)
  @ArrayNotEmpty()
  @IsIn(['api', 'worker'], { each: true, message: 'must be api, worker or api,worker' })
  ROLES: Role[] = ['api', 'worker'];

  @IsOptional()
  @Matches(/^postgres(ql)?:\/\//, { message: 'must begin with postgresql://' })
  DATABASE_URL?: string;

  @IsOptional()
  @Matches(/^postgres(ql)?:\/\//, { message: 'must begin with postgresql://' })
  DATABASE_OWNER_URL?: string;

  @IsOptional()
  @Matches(/^rediss?:\/\//, { message: 'must begin with redis:// or rediss://' })
  REDIS_URL?: string;

  @IsString()
  @Matches(/^[A-Za-z0-9_-]{1,40}$/)
  QUEUE_PREFIX: string = 'notebridge';

  @IsOptional()
  @IsHttpUrl()
  @Transform(({ value }) => (typeof value === 'string' && !value.includes('://') ? `https://${value}` : value))
  PLATFORM_PARTNER_DOMAIN?: string;

  @IsOptional()
  @IsString()
  PLATFORM_CONTRACT?: string;

  /** Seconds; a call without an answer by then has an unknown outcome. */
  @Type(() => Number)
  @IsNumber()
  @Min(0.1)
  @Max(60)
  PLATFORM_TIMEOUT_SECONDS: number = 10;

  /** Spec, Limits: 300 requests per minute per API key over all user-management endpoints. */
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(1_000_000)
  USER_MANAGEMENT_CALLS_PER_MINUTE: number = 300;

  /** Seconds; the platform's minute. Shortened only to rehearse the limit against the simulator. */
  @Type(() => Number)
  @IsNumber()
  @Min(0.5)
  @Max(60)
  @IsForRehearsal(60, { message: 'must be 60: only against a platform on a loopback host may it be less' })
  USER_MANAGEMENT_WINDOW_SECONDS: number = 60;

  /** Seconds to wait before a create without an answer is looked up: the platform may commit late. */
  @Type(() => Number)
  @IsNumber()
  @Min(0)
  @Max(86_400)
  UNKNOWN_OUTCOME_GRACE_SECONDS: number = 60;

  /** Seconds; a session that has not ended by this age is looked up, whether or not an event came. */
  @Type(() => Number)
  @IsNumber()
  @Min(1)
  @Max(30 * 86_400)
  SESSION_REFRESH_AFTER_SECONDS: number = 900;

  /** Seconds between two such look-ups; they become rarer as a session gets old. */
  @Type(() => Number)
  @IsNumber()
  @Min(1)
  @Max(30 * 86_400)
  SESSION_REFRESH_EVERY_SECONDS: number = 600;

  /** Seconds; a compliance job that has not ended by this age is looked up. */
  @Type(() => Number)
  @IsNumber()
  @Min(0.1)
  @Max(30 * 86_400)
  COMPLIANCE_REFRESH_AFTER_SECONDS: number = 5;

  /** Seconds between two such look-ups at first; they become rarer as a job gets old. */
  @Type(() => Number)
  @IsNumber()
  @Min(0.1)
  @Max(30 * 86_400)
  COMPLIANCE_REFRESH_EVERY_SECONDS: number = 5;

  /** Connections that one process takes at once; what is beyond is closed without an answer. */
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(1_000_000)
  MAX_CONNECTIONS: number = 2_000;

  /** Seconds in which a body that is read into memory has to arrive. */
  @Type(() => Number)
  @IsNumber()
  @Min(1)
  @Max(3_600)
  BODY_TIMEOUT_SECONDS: number = 30;

  /** Bytes of all such bodies that have begun to arrive. */
  @Transform(({ value }) => parseByteSize(value))
  @HoldsAtLeast('WEBHOOK_BODY_LIMIT')
  ARRIVING_BODIES_LIMIT: number = 64 * 1024 ** 2;

  /** Streams of server-sent events that one key may have open at once in one process. */
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(10_000)
  EVENT_STREAMS_PER_KEY: number = 20;

  @Transform(({ value }) => parseByteSize(value))
  @IsInt({ message: 'must be a size such as 5 MiB, 512 KiB or a number of bytes' })
  @Min(1024)
  WEBHOOK_BODY_LIMIT: number = 5 * 1024 * 1024;

  @IsOptional()
  @Type(() => Number)
  @IsInt()
  @Min(NARROWEST_AGE_WINDOW_SECONDS, {
    message: 'must be at least $constraint1, or unset: a retry may keep the timestamp of the first try',
  })
  WEBHOOK_MAX_AGE_SECONDS?: number;

  @Transform(list)
  @IsHttpUrl({ each: true })
  REDIRECT_ALLOWED_ORIGINS: string[] = [];

  @Transform(flag)
  @IsBoolean({ message: 'must be true or false' })
  @IsOptional()
  PRIVATE_HOSTS_ALLOWED?: boolean;

  @Transform(list)
  @IsOptional()
  @Matches(DATA_KEY, {
    each: true,
    message: 'must be id:base64 pairs, each key being 32 bytes (openssl rand -base64 32)',
  })
  @ArrayUnique((pair: string) => String(pair).split(':')[0], { message: 'must not name two keys alike' })
  DATA_KEYS?: string[];

  /** An import that would delete more than this needs an override: per cent of those there are, and people. */
  @Matches(THRESHOLD, { message: 'must be per cent and people such as 10%,5 or the word unlimited' })
  IMPORT_MAX_DELETES: string = '10%,5';

  /** Likewise for clients from whose list an import takes a provider. */
  @Matches(THRESHOLD, { message: 'must be per cent and people such as 10%,5 or the word unlimited' })
  IMPORT_MAX_PROVIDER_REMOVALS: string = '10%,5';

  /** Likewise for people who are new. */
  @Matches(THRESHOLD, { message: 'must be per cent and people such as 10%,5 or the word unlimited' })
  IMPORT_MAX_CREATES: string = 'unlimited';

  /** Bytes of all files of one import. */
  @Transform(({ value }) => parseByteSize(value))
  @IsInt({ message: 'must be a size such as 2 GiB, 512 MiB or a number of bytes' })
  @Min(1024)
  IMPORT_BODY_LIMIT: number = 2 * 1024 ** 3;

  /** Rows of one import; what is stored of each is many times a short line. */
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(10_000_000)
  IMPORT_MAX_ROWS: number = 3_000_000;

  /** Days for which histories and copies are kept; notes and the audit trail stay. */
  @Type(() => Number)
  @IsInt()
  @Min(1)
  @Max(36_500)
  RETENTION_DAYS: number = 90;

  @IsIn(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
  LOG_LEVEL: string = 'info';

  /** Where the embedded database and keys made at the first start are kept. */
  @IsString()
  DATA_DIR: string = '.data';

  /** True when addresses on private networks may be handed in; implied when the platform itself is on loopback. */
  get privateHostsAllowed(): boolean {
    return this.PRIVATE_HOSTS_ALLOWED ?? isLoopbackHost(new URL(this.PLATFORM_BASE_URL).hostname);
  }

  /** Answers whether this process runs the given part. */
  hasRole(role: Role): boolean {
    return this.ROLES.includes(role);
  }
}

/**
 * Reads and validates an environment.
 *
 * @param raw usually `process.env`; unknown variables are left alone, blank ones are not set
 * @throws {Error} whose message lists every faulty variable and what it must hold; never a value
 */
export function validateEnv(raw: Record<string, unknown>): Env {
  const given = Object.fromEntries(Object.entries(raw).filter(([, value]) => !isBlank(value)));
  const env = plainToInstance(Env, given, { exposeDefaultValues: true });
  const faults = validateSync(env, { forbidUnknownValues: true });
  if (faults.length === 0) return env;
  const lines = faults.map(({ property, constraints = {} }) => {
    const unset = raw[property] === undefined || raw[property] === '';
    const rules = Object.values(constraints).map((rule) => rule.replace(`${property} `, ''));
    return `  ${property} ${unset ? `is not set: it ${rules[0]}` : rules.join('; ')}`;
  });
  throw new Error(`The environment is not usable; mend these settings (see .env.example):\n${lines.join('\n')}`);
}

function isBlank(value: unknown): boolean {
  return typeof value === 'string' && value.trim() === '';
}

/** The environment of this process. @throws {Error} as `validateEnv` */
export function readEnv(): Env {
  return validateEnv(process.env);
}
