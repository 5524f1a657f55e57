import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import { applyDecorators } from '@nestjs/common';
import { ValidateBy } from 'class-validator';
import pg from 'pg';
import type { Env } from './env.js';
import { List, Rule } from './setting.decorators.js';
import { isLoopbackHost, isPlainUrl, isPlatformHere, parseUrl } from './urls.js';

/** True if the way to a host needs no TLS: the host is this machine, or PLAINTEXT_HOSTS says that its network is private. */
function isPrivateWay(host: string, { PLAINTEXT_HOSTS: named }: Env): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (bare === '' || bare.startsWith('/') || bare === '::1' || isLoopbackHost(bare)) return true;
  return named.some((each) => each.toLowerCase() === bare);
}

/** Asks `pg` itself, which also reads PGHOST and PGSSLMODE, because there are many ways to spell "without TLS". */
function isPostgresWaySafe(url: string, env: Env): boolean {
  try {
    const client = new pg.Client({ connectionString: url });
    const tls = client.ssl as boolean | ConnectionOptions; // its type lacks the options
    const isChecked = typeof tls === 'object' ? tls.rejectUnauthorized !== false : tls;
    return isChecked || isPrivateWay(client.host, env);
  } catch {
    return false;
  }
}

/**
 * Describes the fault of a file of certificates that an address of PostgreSQL names. Does not repeat its path, which may
 * tell who is served.
 */
function certificateFault(url: string): string | undefined {
  for (const parameter of ['sslrootcert', 'sslcert']) {
    const file = parseUrl(url)?.searchParams.get(parameter);
    try {
      if (file) new X509Certificate(readFileSync(file));
    } catch (error) {
      const { code = 'no reason given' } = error as NodeJS.ErrnoException;
      return `must name a readable file of certificates (PEM) as ${parameter} (${code}): correct its path or its rights`;
    }
  }
  return undefined;
}

/** True for a list of hosts, which libpq reads and node-postgres does not. */
function hasManyHosts(url: string): boolean {
  const [, authority = ''] = /^postgres(?:ql)?:\/\/([^/?#]*)/.exec(url) ?? [];
  return authority.slice(authority.lastIndexOf('@')).includes(',');
}

const ONE_HOST =
  'must name one host, not a list: name an address that follows the primary after a failover, such as a virtual IP address';

const POSTGRES_RULE =
  'must begin with postgresql:// and ask for TLS with a checked certificate (?sslmode=verify-full, and the file of an ' +
  'authority of your own as &sslrootcert=), unless PLAINTEXT_HOSTS names its host';

function postgresFault(value: unknown, env: Env): string | undefined {
  const url = String(value ?? '');
  if (hasManyHosts(url)) return ONE_HOST;
  const isRight = /^postgres(ql)?:\/\//.test(url) && isPostgresWaySafe(url, env);
  return certificateFault(url) ?? (isRight ? undefined : POSTGRES_RULE);
}

/** An address of PostgreSQL, with TLS unless the way to its host is private. */
export const PostgresUrl = () =>
  ValidateBy({
    name: 'postgresUrl',
    validator: {
      validate: (value, args) => postgresFault(value, args?.object as Env) === undefined,
      defaultMessage: (args) => postgresFault(args?.value, args?.object as Env) ?? '',
    },
  });

/** An address of Redis, with TLS unless the way to its host is private. */
export const RedisUrl = () =>
  Rule('must begin with rediss:// (TLS), or with redis:// where PLAINTEXT_HOSTS names its host', (value, env) => {
    const url = parseUrl(value);
    if (url === undefined || !/^rediss?:$/.test(url.protocol)) return false;
    // ioredis takes options from the query, and an empty one named tls would switch it off.
    const isSecure = url.protocol === 'rediss:' && !url.searchParams.has('tls');
    return isSecure || isPrivateWay(url.hostname, env);
  });

/** The address of a web service to which secrets are sent. */
export const PublicUrl = () =>
  applyDecorators(
    Rule('must be a complete http:// or https:// address', isPlainUrl),
    Rule('must begin with https://, unless its host is on loopback or in PLAINTEXT_HOSTS', (value, env) => {
      const url = parseUrl(value);
      return url?.protocol === 'https:' || isPrivateWay(url?.hostname ?? '', env);
    }),
  );

/** The host on which this service listens without TLS: loopback, behind a named proxy, or a private network. */
export const ListenHost = () =>
  Rule(
    'must be on loopback, because this service has no TLS listener: put a proxy with TLS in front and name it in ' +
      'TRUSTED_PROXIES, or name this HOST in PLAINTEXT_HOSTS if its network is private',
    (value, env) => env.TRUSTED_PROXIES.length > 0 || isPrivateWay(String(value), env),
  );

/** Node's own switch to accept any certificate, allowed only if the platform is on this machine. */
export const CheckedCertificates = () =>
  Rule(
    'must not be 0, which takes any certificate: name your authority in NODE_EXTRA_CA_CERTS instead',
    (value, env) => value !== '0' || isPlatformHere(env),
  );

/** Addresses and ranges such as `10.0.0.5` or `10.0.0.0/8`. A range of all addresses would let anyone name any. */
export const AddressRanges = () =>
  List('must be addresses or ranges such as 10.0.0.5,10.1.0.0/16, none of all addresses', (text) => {
    const [address = '', length = '1', ...more] = text.split('/');
    const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)] ?? 0;
    return more.length === 0 && /^[1-9]\d{0,2}$/.test(length) && Number(length) <= bits;
  });

export const Hosts = () =>
  List(
    'must be host names or addresses such as ehr.internal,10.0.0.5, without a scheme, port, path, range or wildcard',
    (host) => isIP(host) !== 0 || /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(host),
  );
