import { misspellings, validateEnv } from './env.validation.js';

const KEY = Buffer.alloc(32, 7).toString('base64');

const good = {
  PLATFORM_BASE_URL: 'https://platform.example/',
  PLATFORM_API_KEY: 'platform-key',
  PLATFORM_WEBHOOK_SECRET: 'a-webhook-secret-of-the-environment',
  ADMIN_API_KEY: 'first-administrator-key-of-notebridge',
  DATABASE_URL: 'postgresql://u:p@localhost/notebridge',
  DATA_KEYS: `k1:${KEY}`,
  FINGERPRINT_KEYS: `f1:${KEY}`,
  AUDIT_KEYS: `a1:${KEY}`,
};
const onThisMachine = { PLATFORM_BASE_URL: 'http://127.0.0.1:4010' };
const env = (more: Record<string, string> = {}) => validateEnv({ ...good, ...more });
const fault = (raw: Record<string, string | undefined>): string => {
  try {
    validateEnv(raw);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

test('all settings but eight have defaults', () => {
  expect(env()).toMatchObject({
    PLATFORM_BASE_URL: 'https://platform.example',
    PORT: 3000,
    HOST: '127.0.0.1',
    ROLES: ['api', 'worker'],
    USER_MANAGEMENT_CALLS_PER_MINUTE: 300,
    UNKNOWN_OUTCOME_GRACE_SECONDS: 60,
    WEBHOOK_BODY_LIMIT: 262_144,
  });
});

test('lists all missing settings, each with what it must be', () => {
  const message = fault({});
  for (const name of Object.keys(good)) expect(message).toMatch(new RegExp(`^ {2}${name} is not set: it must`, 'm'));
});

test('lists all faulty settings, one per line', () => {
  const message = fault({ ...good, PORT: 'eighty', REDIS_URL: 'localhost', ROLES: 'api,boss', LOG_LEVEL: 'loud' });
  const named = message
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(' ')[0]);
  expect(named.sort()).toEqual(['LOG_LEVEL', 'PORT', 'REDIS_URL', 'ROLES']);
});

test('never repeats a value in the message', () => {
  const secret = 'hunter2-hunter2';
  const names = [
    ...Object.keys(good),
    ...['PORT', 'PUBLIC_URL', 'ROLES', 'DATABASE_URL', 'DATABASE_OWNER_URL', 'REDIS_URL', 'PLATFORM_PARTNER_DOMAIN'],
    ...['USER_MANAGEMENT_CALLS_PER_MINUTE', 'UNKNOWN_OUTCOME_GRACE_SECONDS', 'WEBHOOK_BODY_LIMIT', 'DATA_KEYS'],
    ...['WEBHOOK_MAX_AGE_SECONDS', 'REDIRECT_ALLOWED_ORIGINS', 'PRIVATE_HOSTS_ALLOWED', 'LOG_LEVEL'],
  ];
  const message = fault(Object.fromEntries(names.map((name) => [name, `${secret} /`])));
  expect(message).toContain('PORT');
  expect(message).not.toContain('hunter2');
});

describe('the platform’s address', () => {
  test.each(['https://platform.example', 'http://127.0.0.1:4000', 'http://localhost:4000/v2', 'http://[::1]:4000'])(
    'may be %s',
    (url) => {
      expect(env({ PLATFORM_BASE_URL: url }).PLATFORM_BASE_URL).toBe(url);
    },
  );

  test.each([
    'http://platform.example',
    'http://127.0.0.1.example.org',
    'http://localhost.example.org',
    'http://128.0.0.1',
    'platform.example',
    'ftp://platform.example',
    'https://key@platform.example',
    'https://platform.example/?key=1',
  ])('may not be %s', (url) => {
    expect(fault({ ...good, PLATFORM_BASE_URL: url })).toContain('PLATFORM_BASE_URL');
  });

  test('loses the slashes at its end and keeps its path', () => {
    expect(env({ PLATFORM_BASE_URL: 'https://platform.example/eu//' }).PLATFORM_BASE_URL).toBe(
      'https://platform.example/eu',
    );
  });

  test('on loopback allows addresses on private networks, unless a setting forbids them', () => {
    expect(env().privateHostsAllowed).toBe(false);
    expect(env({ PLATFORM_BASE_URL: 'http://localhost:4000' }).privateHostsAllowed).toBe(true);
    expect(
      env({ PLATFORM_BASE_URL: 'http://localhost:4000', PRIVATE_HOSTS_ALLOWED: 'false' }).privateHostsAllowed,
    ).toBe(false);
  });
});

describe('sizes', () => {
  test.each([
    ['5 MiB', 5_242_880],
    ['512KiB', 524_288],
    ['1.5 mb', 1_500_000],
    ['1048576', 1_048_576],
    ['2048 B', 2_048],
  ])('%s is understood', (text, bytes) => {
    expect(env({ WEBHOOK_BODY_LIMIT: text }).WEBHOOK_BODY_LIMIT).toBe(bytes);
  });

  test.each(['five', '5 MiBs', '-1', '1e6', '12'])('%s is rejected', (text) => {
    expect(fault({ ...good, WEBHOOK_BODY_LIMIT: text })).toContain('WEBHOOK_BODY_LIMIT');
  });
});

describe('lists', () => {
  test('are split at commas, without blanks and empty items', () => {
    const lists = { PLATFORM_WEBHOOK_SECRET: ' new , old,, ', ROLES: 'worker', NO_PROXY: 'a.example, b.example' };
    expect(env({ ...onThisMachine, ...lists })).toMatchObject({
      PLATFORM_WEBHOOK_SECRET: ['new', 'old'],
      ROLES: ['worker'],
      NO_PROXY: ['a.example', 'b.example'],
    });
  });

  it.each([
    ['["a,b","c"]', ['a,b', 'c']],
    [' [" a "] ', [' a ']],
    ['[a,b]', ['[a', 'b]']],
    ['[1]', ['[1]']],
  ])('takes a webhook secret that holds a comma: %s', (setting, secrets) => {
    expect(env({ ...onThisMachine, PLATFORM_WEBHOOK_SECRET: setting }).PLATFORM_WEBHOOK_SECRET).toEqual(secrets);
  });

  test('of secrets must contain one', () => {
    expect(fault({ ...good, PLATFORM_WEBHOOK_SECRET: ' , ' })).toContain('PLATFORM_WEBHOOK_SECRET');
  });

  test('data keys are names with 32 bytes each', () => {
    const key = Buffer.alloc(32, 7).toString('base64');
    expect(env({ DATA_KEYS: `k2:${key}, k1:${key}` }).DATA_KEYS).toEqual([`k2:${key}`, `k1:${key}`]);
    expect(fault({ ...good, DATA_KEYS: `k1:${key.slice(4)}` })).toContain('DATA_KEYS');
    expect(fault({ ...good, DATA_KEYS: key })).toContain('DATA_KEYS');
    expect(fault({ ...good, DATA_KEYS: `k1:${key},k1:${key}` })).toContain('DATA_KEYS must not name two keys alike');
    expect(fault({ ...good, FINGERPRINT_KEYS: `f1:${key},f2:${key}` })).toContain(
      'FINGERPRINT_KEYS must be one key, because fingerprints are not recomputed: keep only the first, which made the stored ones',
    );
  });
});

test('a bare host of the partner domain means https', () => {
  expect(env({ PLATFORM_PARTNER_DOMAIN: 'notes.ehr.example' }).PLATFORM_PARTNER_DOMAIN).toBe(
    'https://notes.ehr.example',
  );
  expect(env({ PLATFORM_PARTNER_DOMAIN: 'http://127.0.0.1:4000' }).PLATFORM_PARTNER_DOMAIN).toBe(
    'http://127.0.0.1:4000',
  );
});

test('an optional setting that is empty is not set', () => {
  const empty = env({ DATABASE_OWNER_URL: '', REDIS_URL: ' ', PLATFORM_PARTNER_DOMAIN: '', PUBLIC_URL: '' });
  expect([empty.DATABASE_OWNER_URL, empty.REDIS_URL, empty.PLATFORM_PARTNER_DOMAIN, empty.PUBLIC_URL]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test('an empty number gets its default, not 0', () => {
  expect(env({ PORT: '', USER_MANAGEMENT_CALLS_PER_MINUTE: '' })).toMatchObject({
    PORT: 3000,
    USER_MANAGEMENT_CALLS_PER_MINUTE: 300,
  });
});

test('a required secret that contains only blanks is missing', () => {
  expect(fault({ ...good, PLATFORM_API_KEY: '   ' })).toContain('PLATFORM_API_KEY');
});

test.each(['60', '3599'])(
  'a maximum age of webhooks of %s seconds is rejected, because it loses retries',
  (seconds) => {
    expect(fault({ ...good, WEBHOOK_MAX_AGE_SECONDS: seconds })).toMatch(
      /WEBHOOK_MAX_AGE_SECONDS must be a whole number from 3600/,
    );
    expect(env({ WEBHOOK_MAX_AGE_SECONDS: '3600' }).WEBHOOK_MAX_AGE_SECONDS).toBe(3600);
  },
);

test('an API key may have a line break at its end, but not inside', () => {
  expect(env({ PLATFORM_API_KEY: ' platform-key\r\n' }).PLATFORM_API_KEY).toBe('platform-key');
  for (const key of ['platform\nkey', 'platform\u0000key', 'plätform']) {
    const said = fault({ ...good, PLATFORM_API_KEY: key });
    expect(said).toContain('PLATFORM_API_KEY must hold the API key');
    expect(said).not.toContain(key);
  }
});

test('proxies are trusted by address or range, but not every address', () => {
  expect(env().TRUSTED_PROXIES).toEqual([]);
  const some = '10.0.0.5, 172.16.0.0/12 ,2001:db8::/32';
  expect(env({ TRUSTED_PROXIES: some }).TRUSTED_PROXIES).toEqual(['10.0.0.5', '172.16.0.0/12', '2001:db8::/32']);
  for (const wrong of ['true', '*', '0.0.0.0/0', '::/0', '10.0.0.0/33', '10.0.0.0/8/8', 'proxy.example', '10.0.0.1/'])
    expect(fault({ ...good, TRUSTED_PROXIES: wrong })).toMatch(/TRUSTED_PROXIES must be addresses or ranges/);
});

test('SUBSCRIPTION_HOSTS_ALLOWED takes names and addresses, and nothing that would match no host', () => {
  const some = 'ehr.internal, EHR_2, 10.0.0.5, 2001:db8::5';
  expect(env({ SUBSCRIPTION_HOSTS_ALLOWED: some }).SUBSCRIPTION_HOSTS_ALLOWED).toEqual(some.split(', '));
  for (const wrong of ['https://ehr.internal', 'ehr.internal:8443', 'ehr.internal/hook', '*.internal', '10.0.0.0/8'])
    expect(fault({ ...good, SUBSCRIPTION_HOSTS_ALLOWED: wrong })).toMatch(
      /^ {2}SUBSCRIPTION_HOSTS_ALLOWED must be host/m,
    );
});

test('retention is in whole days or off, and at least a year for the audit log', () => {
  expect(env()).toMatchObject({ RETENTION_DAYS: 90, NOTES_RETENTION_DAYS: 'off', AUDIT_RETENTION_DAYS: 2_192 });
  expect(env({ NOTES_RETENTION_DAYS: '3650', FEED_RETENTION_DAYS: ' OFF ' })).toMatchObject({
    NOTES_RETENTION_DAYS: 3_650,
    FEED_RETENTION_DAYS: 'off',
  });
  for (const wrong of ['0', '1.5', 'never', '40000'])
    expect(fault({ ...good, NOTES_RETENTION_DAYS: wrong })).toMatch(
      /NOTES_RETENTION_DAYS must be whole days from 1 to/,
    );
  expect(fault({ ...good, AUDIT_RETENTION_DAYS: '364' })).toMatch(/AUDIT_RETENTION_DAYS must be whole days from 365/);
  expect(fault({ ...good, ERASE_NOTES_OF_DELETED_CLIENTS: 'yes' })).toContain('ERASE_NOTES_OF_DELETED_CLIENTS');
});

describe('connections to other machines', () => {
  const DATABASES = ['DATABASE_URL', 'DATABASE_OWNER_URL'];
  const TLS = ['sslmode=verify-full', 'sslmode=verify-ca', 'sslmode=require', 'ssl=true'];
  const NO_TLS = ['', 'sslmode=disable', 'sslmode=no-verify', 'ssl=no-verify', 'ssl=0', 'ssl=', 'host=other.example'];
  const NO_CHECK = ['uselibpqcompat=true&sslmode=require', 'uselibpqcompat=true&sslmode=prefer'];

  test.each(DATABASES)('%s must use TLS with a checked certificate', (name) => {
    const url = (query: string, host = 'db.example') => `postgresql://u:secret@${host}/notebridge?${query}`;
    for (const query of TLS) expect(fault({ ...good, [name]: url(query) })).toBe('');
    for (const query of [...NO_TLS, ...NO_CHECK]) {
      const said = fault({ ...good, [name]: url(query) });
      expect(said).toMatch(new RegExp(`^  ${name} must .*sslmode=verify-full.* unless PLAINTEXT_HOSTS`, 'm'));
      expect(said).not.toMatch(/secret|db\.example/);
    }
  });

  test.each([
    ['/none', 'ENOENT'],
    ['/', 'EISDIR'],
    [__filename, 'ERR_OSSL_PEM_NO_START_LINE'],
  ])('a file of certificates that cannot be used (%s) is reported with its code', (file, code) => {
    for (const host of ['db.example', '127.0.0.1']) {
      const said = fault({
        ...good,
        DATABASE_URL: `postgresql://u:secret@${host}/n?sslmode=verify-full&sslrootcert=${file}`,
      });
      expect(said).toContain(`must name a readable file of certificates (PEM) as sslrootcert (${code}): correct`);
      expect(said).not.toMatch(/secret|ask for TLS/);
    }
  });

  test.each(['a,b', 'a:5432,b:5432', '127.0.0.1,127.0.0.2'])('a list of hosts (%s) is not supported', (hosts) => {
    const said = fault({ ...good, DATABASE_URL: `postgresql://u:se,cret@${hosts}/n?sslmode=verify-full` });
    expect(said).toMatch(/DATABASE_URL must name one host, .* follows the primary/);
    expect(said).not.toMatch(/cret|ask for TLS/);
  });

  test('a comma in a password or a name does not make a list of hosts', () => {
    expect(fault({ ...good, DATABASE_URL: 'postgresql://u,v:se,cret@127.0.0.1/n,m' })).toBe('');
  });

  test.each(['127.0.0.1:5432', 'localhost', '[::1]:5432', '%2Fvar%2Frun%2Fpostgresql'])(
    'a database at %s needs no TLS',
    (host) => {
      expect(fault({ ...good, DATABASE_URL: `postgresql://u:p@${host}/notebridge` })).toBe('');
    },
  );

  test.each(['rediss://cache.example:6380', 'redis://127.0.0.1', 'redis://[::1]:6379', 'redis://localhost:6379/1'])(
    'Redis may be at %s',
    (url) => {
      expect(fault({ ...good, REDIS_URL: url })).toBe('');
    },
  );

  test.each(['redis://cache.example', 'rediss://cache.example?tls=', 'redis://10.0.0.4:6379', 'http://localhost'])(
    'Redis may not be at %s',
    (url) => {
      expect(fault({ ...good, REDIS_URL: url })).toMatch(/^ {2}REDIS_URL must begin with rediss:/m);
    },
  );

  test('hosts in PLAINTEXT_HOSTS need no TLS', () => {
    const stores = { DATABASE_URL: 'postgresql://u:p@postgres/notebridge', REDIS_URL: 'redis://:p@redis:6379' };
    expect(fault({ ...good, ...stores, PLAINTEXT_HOSTS: 'Postgres, redis' })).toBe('');
    expect(fault({ ...good, ...stores, PLAINTEXT_HOSTS: 'postgres' })).toMatch(/^ {2}REDIS_URL must/m);
    expect(fault({ ...good, ...stores, PLAINTEXT_HOSTS: 'redis' })).toMatch(/^ {2}DATABASE_URL must/m);
  });

  test('a HOST beyond loopback needs a trusted proxy or a private network', () => {
    for (const HOST of ['0.0.0.0', '::', '10.0.0.7', 'notebridge']) {
      expect(fault({ ...good, HOST })).toMatch(
        /^ {2}HOST must be on loopback, .* TRUSTED_PROXIES, .* PLAINTEXT_HOSTS/m,
      );
      expect(fault({ ...good, HOST, TRUSTED_PROXIES: '10.0.0.5' })).toBe('');
      expect(fault({ ...good, HOST, PLAINTEXT_HOSTS: HOST })).toBe('');
      expect(fault({ ...good, HOST, PLAINTEXT_HOSTS: 'redis' })).not.toBe('');
    }
    for (const HOST of ['127.0.0.1', '::1', 'localhost']) expect(fault({ ...good, HOST })).toBe('');
  });

  test('the recorder, this service and a collector need TLS beyond loopback and PLAINTEXT_HOSTS', () => {
    for (const name of ['PLATFORM_PARTNER_DOMAIN', 'PUBLIC_URL', 'OTEL_EXPORTER_OTLP_ENDPOINT', 'AUDIT_HEADS_URL']) {
      expect(fault({ ...good, [name]: 'http://notes.example' })).toMatch(new RegExp(`^  ${name} must .*https://`, 'm'));
      for (const fit of ['https://notes.example', 'http://127.0.0.1:3000'])
        expect(fault({ ...good, [name]: fit })).toBe('');
    }
    expect(fault({ ...good, PUBLIC_URL: 'http://notebridge:3000', PLAINTEXT_HOSTS: 'notebridge' })).toBe('');
    expect(fault({ ...good, PLATFORM_PARTNER_DOMAIN: 'http://page', PLAINTEXT_HOSTS: 'page' })).not.toBe('');
    const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', PLAINTEXT_HOSTS: 'collector' };
    expect(fault({ ...good, ...collector })).toBe('');
    expect(fault({ ...good, ...collector, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })).toMatch(/must be http\/json/);
  });

  test('Node must check certificates, unless the platform is on this machine', () => {
    expect(fault({ ...good, NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toMatch(/NODE_TLS_REJECT_UNAUTHORIZED must not be 0/);
    expect(fault({ ...good, NODE_TLS_REJECT_UNAUTHORIZED: '1' })).toBe('');
    const rehearsal = { ...good, PLATFORM_BASE_URL: 'http://127.0.0.1:4010', NODE_TLS_REJECT_UNAUTHORIZED: '0' };
    expect(fault(rehearsal)).toBe('');
  });
});

describe('secrets', () => {
  const strong = 'q8Zr2mVb7Lx0Nc4Ky6Tw9Hd3Sf5Gj1Pa';
  const weak = ['a'.repeat(40), 'password'.repeat(5), strong.slice(1)];

  test.each(weak)('the first key may not be %j, and is never shown', (ADMIN_API_KEY) => {
    const said = fault({ ...good, ADMIN_API_KEY });
    expect(said).toMatch(/ADMIN_API_KEY must hold a first administrator key of at least 32 random characters/);
    expect(said).not.toContain(ADMIN_API_KEY);
  });

  test('the first key can be off', () => {
    expect([env({ ADMIN_API_KEY: strong }).adminKey, env({ ADMIN_API_KEY: 'off' }).adminKey]).toEqual([
      strong,
      undefined,
    ]);
  });

  test.each(weak)('of the platform may be %j', (chosen) => {
    const secrets = { PLATFORM_API_KEY: chosen, PLATFORM_WEBHOOK_SECRET: `${strong},${chosen}` };
    expect(env(secrets).PLATFORM_WEBHOOK_SECRET).toEqual([strong, chosen]);
  });
});

test('settings for sign-in are set together or not at all', () => {
  const said = fault({ ...good, OIDC_CLIENT_ID: 'notebridge' });
  const lines = said.split('\n').slice(1);
  expect(lines).toHaveLength(4);
  for (const line of lines)
    expect(line).toMatch(
      /^ {2}OIDC_(ISSUER|CLIENT_SECRET|SCOPES_CLAIM|SCOPES) is not set: it must be set, as OIDC_ISSUER/,
    );
});

describe('a variable that no setting has', () => {
  test.each([
    ['DATABASE_URI', 'DATABASE_URL'],
    ['PLATFORM_APIKEY', 'PLATFORM_API_KEY'],
    ['PLATFORM_BSAE_URL', 'PLATFORM_BASE_URL'],
    ['DATA_KEY_FILE', 'DATA_KEYS'],
    ['AUDIT_KEY', 'AUDIT_KEYS'],
    ['LOG_LEVLE', 'LOG_LEVEL'],
  ])('is reported with the setting that it resembles: %s', (name, setting) => {
    const sentence = `${name} is not a setting and is ignored. Did you mean ${setting}?`;
    expect(misspellings({ ...good, [name]: 'hunter2' })).toEqual([sentence]);
  });

  test('is named next to the fault that it causes', () => {
    const { DATABASE_URL, ...others } = good;
    const said = fault({ ...others, DATABASE_URI: DATABASE_URL });
    expect(said).toMatch(
      /DATABASE_URL is not set: it must[\s\S]*\n {2}DATABASE_URI is not a setting.* DATABASE_URL\?$/,
    );
  });

  test.each(['PATH', 'HOME', 'HOSTNAME', 'HTTP_PROXY', 'NODE_ENV', 'OTEL_SERVICE_NAME', 'REDIS_PORT', 'DATA_DIR'])(
    'may be one of other programs: %s',
    (name) => expect(misspellings({ ...good, [name]: '/x' })).toEqual([]),
  );

  test('is no misspelling if it is a setting, also by its file', () => {
    expect(misspellings({ ...good, PORT: '1', REDIS_URL_FILE: '/run/secrets/redis-url' })).toEqual([]);
  });
});
