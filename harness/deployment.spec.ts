import path from 'node:path';
import { validateEnv } from '../src/config/env.validation.js';
import {
  type ComposeService,
  compose,
  InstalledSecrets,
  imageCommand,
  isSetting,
  longestShutdownSeconds,
  readProjectFile as read,
  settingsIn,
  startOfCompose,
  systemdUnit,
} from './deployment-files.js';

const { services, secrets } = compose();
const service = (name: string): ComposeService => services[name] ?? {};
const dockerfile = read('Dockerfile');
const SERVES = ['node', '--enable-source-maps', 'dist/src/main.js'];

describe('docker-compose.yml', () => {
  const installed = new InstalledSecrets();

  it.each(['api', 'worker', 'migrate'])('gives the %s settings and secrets that the service accepts', (name) => {
    const { settings } = startOfCompose(name);
    expect(Object.keys(settings).filter((setting) => !isSetting(setting))).toEqual([]);
    const files = Object.values(settings).flatMap((value) => /^\/run\/secrets\/(.*)/.exec(value)?.[1] ?? []);
    expect(files.sort()).toEqual([...(service(name).secrets ?? [])].sort());
    const env = validateEnv({ ...settingsIn(read('.env.example')), ...installed.mountedIn(settings) });
    expect(env.ROLES).toEqual(name === 'migrate' ? ['api', 'worker'] : [name]);
    expect(new URL(env.DATABASE_URL).username).toBe('notebridge_service');
    expect(env.DATABASE_OWNER_URL === undefined).toBe(name !== 'migrate');
  });

  it('mounts secrets that deploy/make-secrets.sh writes, or asks the operator for', () => {
    for (const [name, { file }] of Object.entries(secrets)) {
      expect(file).toBe(`./secrets/${name}`);
      expect(installed.read(name)).toMatch(/^[^\n]+\n$/);
    }
    expect(installed.requests.match(/secrets\/[a-z-]+/g)).toEqual([
      'secrets/platform-api-key',
      'secrets/platform-webhook-secret',
    ]);
    expect(read('docker-compose.yml')).not.toMatch(/_PASSWORD(?!_FILE)\b/);
  });

  it('gives the stores the passwords in their URLs', () => {
    const password = (name: string) => new URL(installed.read(name)).password;
    const file = (name: string) => installed.read(name).trim();
    expect([password('database-url'), password('database-owner-url'), password('redis-url')]).toEqual([
      file('service-password'),
      file('postgres-password'),
      file('redis-password'),
    ]);
    expect(service('postgres').environment).toMatchObject({
      POSTGRES_PASSWORD_FILE: '/run/secrets/postgres-password',
      SERVICE_PASSWORD_FILE: '/run/secrets/service-password',
    });
    expect(service('postgres').volumes).toContain('./prisma/roles.sql:/docker-entrypoint-initdb.d/roles.sql:ro');
  });

  it.each(['api', 'worker'])('starts the %s after the migrations', (name) => {
    expect(service('migrate').command).toEqual([...SERVES, 'migrate']);
    expect(service(name).command).toBeUndefined();
    expect(service(name).depends_on?.migrate?.condition).toBe('service_completed_successfully');
  });

  it.each(['api', 'worker'])('lets the %s finish its longest delay and call when it stops', (name) => {
    const { environment, stop_grace_period: grace = '' } = service(name);
    const longest = longestShutdownSeconds(environment?.SHUTDOWN_DELAY_SECONDS !== '0');
    expect(Number(/^(\d+)s$/.exec(grace)?.[1])).toBeGreaterThan(longest);
  });

  it.each(Object.keys(services))('confines %s: no root, read-only, no capabilities, with limits', (name) => {
    expect(service(name)).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.anything(),
      cpus: expect.anything(),
      pids_limit: expect.anything(),
    });
    if (service(name).image !== 'notebridge') expect(service(name).user).toBe(name);
  });

  it('can pin each image by digest', () => {
    for (const name of ['postgres', 'redis'])
      expect(service(name).image).toMatch(new RegExp(`^\\$\\{${name.toUpperCase()}_IMAGE:-${name}:\\d+\\}$`));
    expect(dockerfile.match(/^FROM (?!\$\{NODE_IMAGE\})/gm)).toBeNull();
  });

  it('mounts a folder for the contract file that exists', () => {
    expect(service('api').volumes).toContain('./contract:/app/contract:ro');
    expect(read('contract/README.md')).toContain('PLATFORM_CONTRACT=contract/platform.json');
  });
});

describe('the image', () => {
  const [last = ''] = dockerfile.split(/^FROM /m).slice(-1);

  it('contains the service, its console, command and migrations', () => {
    const copied = [...last.matchAll(/^COPY (?:--from=\w+ )?\S+ (\S+)$/gm)].map(([, target]) => target);
    expect(copied.sort()).toEqual([
      './',
      'bin',
      'dist/console',
      'dist/src',
      'node_modules',
      'prisma/migrations',
      'prisma/roles.sql',
    ]);
    expect(dockerfile).toMatch(/ AS packages\n(?:.*\n)*?RUN npm ci .*--omit=dev --omit=optional/);
  });

  it('runs as a user that Kubernetes recognises as non-root', () => {
    expect(last).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
  });

  it('serves by its command, and has labels with its version', () => {
    expect(imageCommand()).toEqual(SERVES);
    const { version } = JSON.parse(read('package.json'));
    expect(last).toContain(`org.opencontainers.image.version="${version}"`);
    for (const label of ['title', 'description', 'revision', 'base.name'])
      expect(last).toContain(`org.opencontainers.image.${label}="`);
  });

  it('limits the arenas of glibc', () => expect(dockerfile).toMatch(/^ENV .*MALLOC_ARENA_MAX=2/m));
});

describe('deploy/systemd', () => {
  const units = [
    ['api', systemdUnit('notebridge-api@')],
    ['worker', systemdUnit('notebridge-worker@')],
    ['migrate', systemdUnit('notebridge-migrate')],
  ] as const;
  const servers = units.slice(0, 2);

  it.each(units)(
    'gives the %s settings and secrets that the service accepts',
    (role, { values, start: { settings } }) => {
      const installed = new InstalledSecrets({
        'database-url': 'postgresql://service:password@db.example/notebridge?sslmode=verify-full',
        'database-owner-url': 'postgresql://owner:password@db.example/notebridge?sslmode=verify-full',
        'redis-url': 'rediss://:password@redis.example:6379',
      });
      const { NODE_ENV, PORT, MALLOC_ARENA_MAX, ...own } = settings;
      expect([NODE_ENV, PORT]).toEqual(['production', role === 'migrate' ? undefined : '%i']);
      expect(MALLOC_ARENA_MAX).toBe(role === 'migrate' ? undefined : '2');
      const env = validateEnv({ ...settingsIn(read('.env.example')), ...installed.mountedIn(own) });
      expect(env.ROLES).toEqual(role === 'migrate' ? ['api', 'worker'] : [role]);
      expect(env.DATABASE_OWNER_URL === undefined).toBe(role !== 'migrate');
      const files = Object.entries(own).flatMap(([name, file]) => (name.endsWith('_FILE') ? path.basename(file) : []));
      expect(values('LoadCredential')).toEqual(files.map((file) => `${file}:/etc/notebridge/secrets/${file}`));
    },
  );

  it('runs the commands of the image', () => {
    const commands = units.map(([, { start }]) => start.command);
    const serves = ['/usr/bin/node', ...SERVES.slice(1)];
    expect(commands).toEqual([serves, serves, [...serves, 'migrate']]);
    expect(units.map(([, { values }]) => values('Type'))).toEqual([['exec'], ['exec'], ['oneshot']]);
  });

  it.each(servers)(
    'restarts the %s, and lets it finish its longest call when it stops',
    (_, { values, start: { settings } }) => {
      expect(values('Restart')).toEqual(['always']);
      const longest = longestShutdownSeconds(settings.SHUTDOWN_DELAY_SECONDS !== undefined);
      expect(Number(values('TimeoutStopSec')[0])).toBeGreaterThan(longest);
    },
  );

  it('confines all units in the same way', () => {
    const hardening = (name: string) => read(`deploy/systemd/${name}.service`).split('\n\n')[2];
    const [first, ...others] = ['notebridge-api@', 'notebridge-worker@', 'notebridge-migrate'].map(hardening);
    for (const line of ['DynamicUser=yes', 'ProtectSystem=strict', 'NoNewPrivileges=yes', 'CapabilityBoundingSet='])
      expect(first?.split('\n')).toContain(line);
    for (const other of others) expect(other?.trim()).toBe(first?.trim());
  });
});
