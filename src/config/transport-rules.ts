import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ValidateBy, type ValidationArguments } from 'class-validator';
import pg from 'pg';
import { isLoopbackHost, isPlatformHere, parseUrl, settingOf } from './setting-rules.js';

/** Whether the way to a host needs no TLS: it stays on this machine, or PLAINTEXT_HOSTS says that its network is private. */
function isPrivateWay(host: string, args?: ValidationArguments): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (bare === '' || bare.startsWith('/') || bare === '::1' || isLoopbackHost(bare)) return true;
  const named = settingOf(args, 'PLAINTEXT_HOSTS');
  return Array.isArray(named) && named.some((each) => String(each).toLowerCase() === bare);
}

/** What `pg` itself makes of an address, PGHOST and PGSSLMODE included: there are many ways to spell "without TLS". */
function isPostgresWaySafe(url: string, args?: ValidationArguments): boolean {
  try {
    const client = new pg.Client({ connectionString: url });
    if (isPrivateWay(client.host, args)) return true;
    const tls: unknown = client.ssl; // true, or the options of tls.connect()
    return (
      tls === true || (typeof tls === 'object' && tls !== null && Reflect.get(tls, 'rejectUnauthorized') !== false)
    );
  } catch {
    return false;
  }
}

/** The files of certificates that an address of PostgreSQL may name; `pg` reads them with the address itself. */
const CERTIFICATES = ['sslrootcert', 'sslcert'];

/** What is wrong with a file that an address names; its path may tell who is served, and is not repeated. */
function certificateFault(url: unknown): string | undefined {
  const named = parseUrl(url)?.searchParams;
  for (const parameter of CERTIFICATES) {
    const file = named?.get(parameter);
    if (!file) continue;
    let text: string;
    try {
      text = readFileSync(file, 'utf8');
    } catch (error) {
      const { code = 'it can not be read' } = error as NodeJS.ErrnoException;
      return `must name a file that can be read as ${parameter} (${code}): correct its path or its rights`;
    }
    if (!isCertificate(text))
      return `must name a file of certificates (PEM) as ${parameter}: the one that it names holds none`;
  }
  return undefined;
}

function isCertificate(text: string): boolean {
  try {
    return new X509Certificate(text).subject !== undefined;
  } catch {
    return false;
  }
}

/** An address of PostgreSQL that asks for TLS where the way there needs it. */
export function IsPostgresUrl(): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) =>
    typeof value === 'string' &&
    /^postgres(ql)?:\/\//.test(value) &&
    certificateFault(value) === undefined &&
    isPostgresWaySafe(value, args);
  const defaultMessage = (args?: ValidationArguments) =>
    certificateFault(args?.value) ??
    'must begin with postgresql:// and ask for TLS with a checked certificate (?sslmode=verify-full, and the file of an ' +
      'authority of your own as &sslrootcert=), unless PLAINTEXT_HOSTS names its host';
  return ValidateBy({ name: 'isPostgresUrl', validator: { validate, defaultMessage } });
}

/** An address of Redis, with TLS where the way there needs it. */
export function IsRedisUrl(): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) => {
    const url = parseUrl(value);
    if (url === undefined || !/^rediss?:$/.test(url.protocol)) return false;
    // ioredis takes options from the query, and an empty one named tls would switch it off.
    const isSecure = url.protocol === 'rediss:' && !url.searchParams.has('tls');
    return isSecure || isPrivateWay(url.hostname, args);
  };
  const defaultMessage = () => 'must begin with rediss:// (TLS), or with redis:// where PLAINTEXT_HOSTS names its host';
  return ValidateBy({ name: 'isRedisUrl', validator: { validate, defaultMessage } });
}

/** The address of a web service that others reach with their secrets. */
export function IsPublicUrl(): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) => {
    const url = parseUrl(value);
    return url?.protocol === 'https:' || isPrivateWay(url?.hostname ?? '', args);
  };
  const defaultMessage = () => 'must begin with https://, unless its host is on loopback or in PLAINTEXT_HOSTS';
  return ValidateBy({ name: 'isPublicUrl', validator: { validate, defaultMessage } });
}

/** Node's own switch, with which it takes any certificate: on only where no other machine is spoken to. */
export function ChecksCertificates(): PropertyDecorator {
  const validate = (value: unknown, args?: ValidationArguments) => value !== '0' || isPlatformHere(args);
  const defaultMessage = () =>
    'must not be 0, which takes any certificate: name your authority in NODE_EXTRA_CA_CERTS instead';
  return ValidateBy({ name: 'checksCertificates', validator: { validate, defaultMessage } });
}
