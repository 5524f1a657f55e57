import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import pg from 'pg';
import { httpUrl, isLoopbackHost, isPlatformHere, parseUrl, rule, text } from './setting-rules.js';

/** True if the way to a host needs no TLS: the host is this machine, or PLAINTEXT_HOSTS says that its network is private. */
function isPrivateWay(host: string, { PLAINTEXT_HOSTS: named }: Record<string, unknown>): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (bare === '' || bare.startsWith('/') || bare === '::1' || isLoopbackHost(bare)) return true;
  return (named as string[]).some((each) => each.toLowerCase() === bare);
}

/** Asks `pg` itself, which also reads PGHOST and PGSSLMODE, because there are many ways to spell "without TLS". */
function isPostgresWaySafe(url: string, settings: Record<string, unknown>): boolean {
  try {
    const client = new pg.Client({ connectionString: url });
    const tls = client.ssl as boolean | ConnectionOptions; // its type lacks the options
    const isChecked = typeof tls === 'object' ? tls.rejectUnauthorized !== false : tls;
    return isChecked || isPrivateWay(client.host, settings);
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

/** An address of PostgreSQL, with TLS unless the way to its host is private. */
export const postgresUrl = text.and((value, settings) => {
  const url = String(value);
  if (hasManyHosts(url)) return ONE_HOST;
  const isRight = /^postgres(ql)?:\/\//.test(url) && isPostgresWaySafe(url, settings);
  return certificateFault(url) ?? (isRight ? undefined : POSTGRES_RULE);
});

/** An address of Redis, with TLS unless the way to its host is private. */
export const redisUrl = text.and(
  rule('must begin with rediss:// (TLS), or with redis:// where PLAINTEXT_HOSTS names its host', (value, settings) => {
    const url = parseUrl(value);
    if (url === undefined || !/^rediss?:$/.test(url.protocol)) return false;
    // ioredis takes options from the query, and an empty one named tls would switch it off.
    const isSecure = url.protocol === 'rediss:' && !url.searchParams.has('tls');
    return isSecure || isPrivateWay(url.hostname, settings);
  }),
);

/** The address of a web service to which secrets are sent. */
export const publicUrl = httpUrl.and(
  rule('must begin with https://, unless its host is on loopback or in PLAINTEXT_HOSTS', (value, settings) => {
    const url = parseUrl(value);
    return url?.protocol === 'https:' || isPrivateWay(url?.hostname ?? '', settings);
  }),
);

/** The host on which this service listens without TLS: loopback, behind a named proxy, or a private network. */
export const privateHost = text.and(
  rule(
    'must be on loopback, because this service has no TLS listener: put a proxy with TLS in front and name it in ' +
      'TRUSTED_PROXIES, or name this HOST in PLAINTEXT_HOSTS if its network is private',
    (value, settings) => (settings.TRUSTED_PROXIES as string[]).length > 0 || isPrivateWay(String(value), settings),
  ),
);

/** Node's own switch to accept any certificate, allowed only if the platform is on this machine. */
export const checkedCertificates = text.and(
  rule(
    'must not be 0, which takes any certificate: name your authority in NODE_EXTRA_CA_CERTS instead',
    (value, settings) => value !== '0' || isPlatformHere(settings),
  ),
);
