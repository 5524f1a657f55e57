import { plainToInstance, Transform } from 'class-transformer';
import { ArrayNotEmpty, IsIn, IsInt, IsOptional, IsString, Matches, Min, validateSync } from 'class-validator';
import { OFF, withSecretFiles } from './secret-files.js';
import { IsBootstrapKey } from './secret-strength.js';
import {
  AreAddressRanges,
  AreKeys,
  ByteSize,
  type Days,
  Flag,
  IsForRehearsal,
  IsHttpUrl,
  IsPlatformPage,
  IsPlatformUrl,
  IsProxyUrl,
  IsThreshold,
  isLoopbackHost,
  KeptDays,
  List,
  Seconds,
  Secrets,
  ToNumber,
  Trimmed,
  WholeNumber,
} from './setting-rules.js';
import { SignInSettings } from './sign-in-settings.js';
import { ChecksCertificates, IsPostgresUrl, IsPrivateHost, IsPublicUrl, IsRedisUrl } from './transport-rules.js';

type Role = 'api' | 'worker';

const DAY_SECONDS = 86_400;

/**
 * Minimum of WEBHOOK_MAX_AGE_SECONDS, because a retry may keep the timestamp of the first try. An hour covers the five
 * retries of the specification with delays that double from 115 seconds: (1 + 2 + 4 + 8 + 16) * 115 + 6 * 5 = 3595.
 */
const NARROWEST_AGE_WINDOW_SECONDS = 3_600;

/** The whole environment of one process. It is read once, and its validation lists every fault. */
export class Env extends SignInSettings {
  @IsPlatformUrl() PLATFORM_BASE_URL!: string;

  @Trimmed()
  @Matches(/^[\x20-\x7e]+$/, {
    message: 'must hold the API key that the platform gave you, in one line of printable ASCII',
  })
  PLATFORM_API_KEY!: string;

  @Secrets()
  @ArrayNotEmpty({ message: 'must hold the webhook secret (comma-separated while one is being rotated)' })
  PLATFORM_WEBHOOK_SECRET!: string[];

  @IsBootstrapKey() ADMIN_API_KEY!: string;

  @WholeNumber(0, 65_535) PORT: number = 3000;

  @IsString() @IsPrivateHost() HOST: string = '127.0.0.1';

  @IsOptional() @IsPublicUrl() @IsHttpUrl() PUBLIC_URL?: string;

  /** Proxies whose X-Forwarded-For is trusted. */
  @AreAddressRanges() TRUSTED_PROXIES: string[] = [];

  @List()
  @ArrayNotEmpty()
  @IsIn(['api', 'worker'], { each: true, message: 'must be api, worker or api,worker' })
  ROLES: Role[] = ['api', 'worker'];

  @IsOptional() @IsPostgresUrl() DATABASE_URL?: string;

  @IsOptional() @IsPostgresUrl() DATABASE_OWNER_URL?: string;

  @WholeNumber(12, 1_000) DATABASE_CONNECTIONS: number = 18;

  @IsOptional() @IsRedisUrl() REDIS_URL?: string;

  /** Hosts of PostgreSQL, Redis and PUBLIC_URL that are reached without TLS, because the network to them is private. */
  @List() PLAINTEXT_HOSTS: string[] = [];

  @IsOptional() @ChecksCertificates() NODE_TLS_REJECT_UNAUTHORIZED?: string;

  @Matches(/^[A-Za-z0-9_-]{1,40}$/, { message: 'must be 1 to 40 letters, digits, _ or -' }) QUEUE_PREFIX: string =
    'notebridge';

  /** Whether nothing is sent to the platform, as after the restore of a backup. */
  @Flag() HOLD_SENDING: boolean = false;

  @IsOptional()
  @IsPlatformPage()
  @Transform(({ value }) => (typeof value === 'string' && !value.includes('://') ? `https://${value}` : value))
  PLATFORM_PARTNER_DOMAIN?: string;

  @IsOptional() @IsString() PLATFORM_CONTRACT?: string;

  /** The proxy for calls to the platform and for uploads to its stores, and the hosts that are reached without it. */
  @IsOptional() @IsProxyUrl() HTTPS_PROXY?: string;
  @List() NO_PROXY: string[] = [];

  /** Seconds; a call without an answer by then has an unknown outcome. */
  @Seconds(0.1, 60) PLATFORM_TIMEOUT_SECONDS: number = 10;

  /** Bytes of one answer of the platform. 16 MiB of notes or transcript are read in less than 250 ms. */
  @ByteSize(64 * 1024) PLATFORM_ANSWER_LIMIT: number = 16 * 1024 ** 2;

  /** Spec, Limits: 300 requests per minute per API key over all user-management endpoints. */
  @WholeNumber(1, 1_000_000) USER_MANAGEMENT_CALLS_PER_MINUTE: number = 300;

  /** Seconds; the platform's minute. Shortened only to rehearse the limit against the simulator. */
  @Seconds(0.5, 60)
  @IsForRehearsal(60)
  USER_MANAGEMENT_WINDOW_SECONDS: number = 60;

  /** Seconds to wait before a create without an answer is looked up: the platform may commit late. */
  @Seconds(0, DAY_SECONDS) UNKNOWN_OUTCOME_GRACE_SECONDS: number = 60;

  /** Seconds; a session that has not ended by this age is looked up, whether or not an event came. */
  @Seconds(1, 30 * DAY_SECONDS) SESSION_REFRESH_AFTER_SECONDS: number = 900;

  /** Seconds between two such lookups; they become rarer as a session gets old. */
  @Seconds(1, 30 * DAY_SECONDS) SESSION_REFRESH_EVERY_SECONDS: number = 600;

  /** Seconds; a compliance job that has not ended by this age is looked up. */
  @Seconds(0.1, 30 * DAY_SECONDS) COMPLIANCE_REFRESH_AFTER_SECONDS: number = 5;

  /** Seconds between two such lookups at first; they become rarer as a job gets old. */
  @Seconds(0.1, 30 * DAY_SECONDS) COMPLIANCE_REFRESH_EVERY_SECONDS: number = 5;

  /** Maximum connections of one process. Above it, the one that was idle the longest is closed. */
  @WholeNumber(1, 1_000_000) MAX_CONNECTIONS: number = 2_000;

  /**
   * Seconds from the signal to stop until the listener closes. /health/ready answers 503 from the signal on, so that load
   * balancers notice in time.
   */
  @Seconds(0, 60) SHUTDOWN_DELAY_SECONDS: number = 0;

  /** Timeout for the headers of a request, from the connection or the first of their bytes on. */
  @Seconds(0.1, 3_600) HEADERS_TIMEOUT_SECONDS: number = 10;

  /** Timeout for the next byte of a request, or for the reader of an answer to take one. */
  @Seconds(0.1, 3_600) SILENCE_TIMEOUT_SECONDS: number = 120;

  /** Timeout for a body that is read into memory. */
  @Seconds(1, 3_600) BODY_TIMEOUT_SECONDS: number = 30;

  /** Maximum bytes of all bodies in memory, except webhooks. Has room for a PDF of 25 MiB. */
  @ByteSize(32 * 1024 ** 2) BODY_MEMORY_LIMIT: number = 96 * 1024 ** 2;

  /** Maximum bytes of all webhooks that arrive. */
  @ByteSize('WEBHOOK_BODY_LIMIT') WEBHOOK_MEMORY_LIMIT: number = 64 * 1024 ** 2;

  /** Maximum requests that one caller has in flight in one process: a key, a person, or an address without either. */
  @WholeNumber(1, 10_000) REQUESTS_PER_CALLER: number = 16;

  /** The same for uploads, event streams, `Prefer: wait` and requests that take longer than two seconds. */
  @WholeNumber(1, 10_000) WAITING_REQUESTS_PER_CALLER: number = 200;

  /** Maximum bytes that the requests of one caller store in a day (UTC). Deletions may use as much again. */
  @ByteSize(1024) KEY_DAILY_BYTES: number = 1024 ** 3;

  /** Maximum streams of server-sent events that one caller has open in one process. */
  @WholeNumber(1, 10_000) EVENT_STREAMS_PER_KEY: number = 20;

  @ByteSize(1024) WEBHOOK_BODY_LIMIT: number = 5 * 1024 * 1024;

  @IsOptional()
  @ToNumber
  @IsInt()
  @Min(NARROWEST_AGE_WINDOW_SECONDS, {
    message: 'must be at least $constraint1, or unset: a retry may keep the timestamp of the first try',
  })
  WEBHOOK_MAX_AGE_SECONDS?: number;

  @List()
  @IsHttpUrl({ each: true })
  REDIRECT_ALLOWED_ORIGINS: string[] = [];

  @IsOptional() @Flag() PRIVATE_HOSTS_ALLOWED?: boolean;

  @AreKeys() DATA_KEYS?: string[];

  /** Make the fingerprints that show which emails, profiles and notes are equal. */
  @AreKeys() FINGERPRINT_KEYS?: string[];

  /** Sign the audit log and the rows that grant rights. */
  @AreKeys() AUDIT_KEYS?: string[];

  /** Receives the newest link of the audit log each minute. */
  @IsOptional() @IsPublicUrl() @IsHttpUrl() AUDIT_HEADS_URL?: string;

  /** An import that would delete more needs an override: a percentage of the existing people, and a number of people. */
  @IsThreshold() IMPORT_MAX_DELETES: string = '10%,5';

  /** The same for clients from whose list an import removes a provider. */
  @IsThreshold() IMPORT_MAX_PROVIDER_REMOVALS: string = '10%,5';

  @ByteSize(1024) IMPORT_BODY_LIMIT: number = 2 * 1024 ** 3;

  /** Rows of one import; what is stored of each is many times a short line. */
  @WholeNumber(1, 10_000_000) IMPORT_MAX_ROWS: number = 3_000_000;

  /** How many days histories and copies are kept if their kind has no setting. */
  @WholeNumber(1, 36_500) RETENTION_DAYS: number = 90;

  @IsOptional() @KeptDays() CALLS_RETENTION_DAYS?: Days;

  @IsOptional() @KeptDays() DELIVERIES_RETENTION_DAYS?: Days;

  @IsOptional() @KeptDays() FEED_RETENTION_DAYS?: Days;

  @IsOptional() @KeptDays() IMPORT_ROWS_RETENTION_DAYS?: Days;

  @IsOptional() @KeptDays() RECORDINGS_RETENTION_DAYS?: Days;

  /** Of each version of notes, from its first fetch. */
  @KeptDays() NOTES_RETENTION_DAYS: Days = 'off';

  /** Of transcripts and insights, from their fetch. */
  @KeptDays() TRANSCRIPTS_RETENTION_DAYS: Days = 'off';

  /** Of the request and the outcome of a compliance job, from its end. */
  @KeptDays() COMPLIANCE_RETENTION_DAYS: Days = 'off';

  /** Six years, as 45 CFR 164.316(b)(2)(i) asks of the record of actions. */
  @KeptDays(365) AUDIT_RETENTION_DAYS: Days = 2_192;

  /** Whether notes, transcripts and insights are erased when the EHR deletes their client. */
  @IsIn(['keep', 'erase']) ERASE_NOTES_OF_DELETED_CLIENTS: 'keep' | 'erase' = 'keep';

  /** Whether /docs and /openapi.json are served. They need no key. */
  @Flag() API_DOCS: boolean = true;

  /** Where traces are delivered, by OTLP over HTTP as JSON; unset: there are none. */
  @IsOptional() @IsPublicUrl() @IsHttpUrl() OTEL_EXPORTER_OTLP_ENDPOINT?: string;

  @IsOptional() @IsString() OTEL_EXPORTER_OTLP_HEADERS?: string;

  @IsOptional()
  @IsIn(['http/json'], {
    message: 'must be http/json, the one protocol that is spoken here (port 4318 of a collector)',
  })
  OTEL_EXPORTER_OTLP_PROTOCOL?: string;

  @IsIn(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']) LOG_LEVEL: string = 'info';

  /** Bytes of the database's disk that are kept for webhooks and deletions. */
  @ByteSize(0) DISK_RESERVE: number = 1024 ** 3;

  /** Maximum size of a database whose disk is not that of DATA_DIR. */
  @IsOptional() @ByteSize('DISK_RESERVE') DATABASE_SIZE_LIMIT?: number;

  /** Where the embedded database and keys made at the first start are kept. */
  @IsString() DATA_DIR: string = '.data';

  /** True when addresses on private networks may be handed in; implied when the platform itself is on loopback. */
  get privateHostsAllowed(): boolean {
    return this.PRIVATE_HOSTS_ALLOWED ?? isLoopbackHost(new URL(this.PLATFORM_BASE_URL).hostname);
  }

  /** The first key; undefined if it is off. */
  get adminKey(): string | undefined {
    return this.ADMIN_API_KEY === OFF ? undefined : this.ADMIN_API_KEY;
  }

  /** True if this process has the role. */
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
  const { settings, faults } = withSecretFiles({ HTTPS_PROXY: raw.https_proxy, NO_PROXY: raw.no_proxy, ...raw });
  const isBlank = (value: unknown) => typeof value === 'string' && value.trim() === '';
  const given = Object.fromEntries(Object.entries(settings).filter(([, value]) => !isBlank(value)));
  const env = plainToInstance(Env, given, { exposeDefaultValues: true });
  const withoutSource = new Set(faults.map(({ secret }) => secret));
  const faulty = validateSync(env, { forbidUnknownValues: true }).filter(
    ({ property }) => !withoutSource.has(property),
  );
  if (faulty.length + faults.length === 0) return env;
  const lines = faulty.map(({ property, constraints = {} }) => {
    const unset = settings[property] === undefined || settings[property] === '';
    const rules = Object.values(constraints).map((rule) => rule.replace(`${property} `, ''));
    return `  ${property} ${unset ? `is not set: it ${rules[0]}` : rules.join('; ')}`;
  });
  lines.push(...faults.map(({ name, fault }) => `  ${name} ${fault}`));
  throw new Error(`The environment is not usable; fix these settings (see .env.example):\n${lines.join('\n')}`);
}

/** The environment of this process. @throws {Error} as `validateEnv` */
export const readEnv = (): Env => validateEnv(process.env);
